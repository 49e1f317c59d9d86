// Opens an address and follows redirects, as a browser of a user who agrees to everything.
const answer = await fetch(process.argv[2]);
process.exit(answer.ok ? 0 : 1);
