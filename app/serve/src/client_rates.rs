//! How often clients without a valid token may ask, and how many connections and bodies there may be: for each network
//! and each token by itself, so that none locks out others.

use axum::extract::{ConnectInfo, Request};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum number of networks that are told apart. While there are more at the same time, all share a rate.
const MAX_NETWORKS: usize = 4_096;
/// One machine has at least all addresses with the same first 64 bits.
const IPV6_NETWORK_BITS: u32 = 64;

/// Where a client is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ClientNetwork {
    /// The socket in the workspace, which only the user can open.
    Local,
    /// An IPv4 address, or the first bits of an IPv6 address.
    Remote(IpAddr),
    /// Any, while there are more than are told apart.
    Other,
}

impl ClientNetwork {
    pub(crate) fn of_address(address: IpAddr) -> ClientNetwork {
        ClientNetwork::Remote(match address.to_canonical() {
            IpAddr::V6(whole) => {
                let mask = u128::MAX << (u128::BITS - IPV6_NETWORK_BITS);
                IpAddr::V6(Ipv6Addr::from_bits(whole.to_bits() & mask))
            }
            short => short,
        })
    }

    /// Returns where a request is from.
    pub(crate) fn of_request(request: &Request) -> ClientNetwork {
        let info = request.extensions().get::<ConnectInfo<SocketAddr>>();
        info.map_or(ClientNetwork::Local, |ConnectInfo(address)| ClientNetwork::of_address(address.ip()))
    }
}

/// A rate for each network.
pub(crate) struct NetworkRates {
    rates: DefaultKeyedRateLimiter<ClientNetwork>,
    max_networks: usize,
}

impl NetworkRates {
    pub(crate) fn new(quota: Quota) -> NetworkRates {
        NetworkRates { rates: RateLimiter::keyed(quota), max_networks: MAX_NETWORKS }
    }

    /// Counts a request. Returns whether it's within the rate.
    pub(crate) fn admits(&self, network: ClientNetwork) -> bool {
        if self.rates.len() >= self.max_networks {
            // Those that have been quiet for a while have their whole rate again.
            self.rates.retain_recent();
        }
        let is_full = self.rates.len() >= self.max_networks;
        let counted = if is_full { ClientNetwork::Other } else { network };
        self.rates.check_key(&counted).is_ok()
    }
}

/// Places of which each key may take some, so that it leaves others to the rest.
pub(crate) struct KeyedPlaces<K> {
    taken: Mutex<HashMap<K, usize>>,
    most: usize,
    most_of_one: usize,
}

/// Places of which each network may take some.
pub(crate) type NetworkPlaces = KeyedPlaces<ClientNetwork>;
/// A place that a network has.
pub(crate) type NetworkPlace = KeyedPlace<ClientNetwork>;

impl<K: Clone + Eq + Hash> KeyedPlaces<K> {
    /// Makes `most` places, of which a key gets at most `most_of_one`.
    pub(crate) fn new(most: usize, most_of_one: usize) -> Arc<KeyedPlaces<K>> {
        Arc::new(KeyedPlaces { taken: Mutex::default(), most, most_of_one })
    }

    /// Returns how many places a key has.
    pub(crate) fn taken_by(&self, key: &K) -> usize {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.get(key).copied().unwrap_or_default()
    }

    /// Takes a place, if there is one.
    pub(crate) fn take(self: &Arc<Self>, key: K) -> Option<KeyedPlace<K>> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let of_one = taken.get(&key).copied().unwrap_or_default();
        if of_one >= self.most_of_one || taken.values().sum::<usize>() >= self.most {
            return None;
        }
        taken.insert(key.clone(), of_one + 1);
        Some(KeyedPlace { places: self.clone(), key })
    }
}

/// A place that was taken. It's free again when this is dropped.
pub(crate) struct KeyedPlace<K: Eq + Hash> {
    places: Arc<KeyedPlaces<K>>,
    key: K,
}

impl<K: Eq + Hash> Drop for KeyedPlace<K> {
    fn drop(&mut self) {
        let mut taken = self.places.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let left = taken.get_mut(&self.key).map(|count| {
            *count = count.saturating_sub(1);
            *count
        });
        if left == Some(0) {
            taken.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroU32;

    fn network(address: &str) -> ClientNetwork {
        ClientNetwork::of_address(address.parse().expect("an address"))
    }

    #[test]
    fn addresses_of_one_machine_are_one_network() {
        assert_eq!(network("::ffff:192.0.2.1"), network("192.0.2.1"));
        assert_eq!(network("2001:db8:1:2:3::4"), network("2001:db8:1:2:ffff::"));
        for (one, other) in [("192.0.2.1", "192.0.2.2"), ("2001:db8:1:2::1", "2001:db8:1:3::1"), ("::1", "127.0.0.1")] {
            assert_ne!(network(one), network(other));
        }
    }

    #[test]
    fn each_network_has_its_rate_unless_there_are_too_many() {
        let quota = Quota::per_hour(NonZeroU32::MIN).allow_burst(NonZeroU32::new(2).expect("a number"));
        let rates = NetworkRates { max_networks: 3, ..NetworkRates::new(quota) };
        let ask = |address: &str| rates.admits(network(address));
        assert_eq!([ask("192.0.2.1"), ask("192.0.2.1"), ask("192.0.2.1")], [true, true, false]);
        assert_eq!([ask("192.0.2.2"), ask("192.0.2.2"), ask("192.0.2.2")], [true, true, false]);
        assert!(rates.admits(ClientNetwork::Local));
        // Three are known: all share a rate now, and the table doesn't grow.
        let admitted = (0..100).filter(|last| ask(&format!("198.51.100.{last}"))).count();
        assert_eq!((admitted, rates.rates.len()), (2, 4));
    }

    #[test]
    fn a_network_leaves_places_to_others() {
        let places = NetworkPlaces::new(3, 2);
        let (one, other) = (network("192.0.2.1"), network("192.0.2.2"));
        let taken = (places.take(one), places.take(one));
        assert!(taken.0.is_some() && taken.1.is_some() && places.take(one).is_none());
        let last = places.take(other);
        assert!(last.is_some() && places.take(other).is_none());
        assert_eq!([one, other, network("::1")].map(|network| places.taken_by(&network)), [2, 1, 0]);
        drop((taken, last));
        assert!(places.taken.lock().expect("open").is_empty());
    }
}
