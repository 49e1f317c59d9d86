//! Wikilinks in tables, where the bar before a link's text is escaped: `[[Note\|text]]`.

use pulldown_cmark::{CowStr, Event, LinkType, Tag};

/// Returns an event without the backslash that the parser leaves at the end of such a link's target.
pub(super) fn without_escape(event: Event<'_>) -> Event<'_> {
    match event {
        Event::Start(Tag::Link {
            link_type: link_type @ LinkType::WikiLink { has_pothole: true },
            dest_url,
            title,
            id,
        }) => Event::Start(Tag::Link { link_type, dest_url: unescaped(dest_url), title, id }),
        Event::Start(Tag::Image {
            link_type: link_type @ LinkType::WikiLink { has_pothole: true },
            dest_url,
            title,
            id,
        }) => Event::Start(Tag::Image { link_type, dest_url: unescaped(dest_url), title, id }),
        event => event,
    }
}

fn unescaped(target: CowStr<'_>) -> CowStr<'_> {
    match target.strip_suffix('\\') {
        Some(plain) => CowStr::from(plain.to_owned()),
        None => target,
    }
}
