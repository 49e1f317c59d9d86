// Lets Node's fetch send a token to our server, for the conformance suite, which has no option for it.
//
//   MCP_TOKEN=… MCP_UNDICI=…/node_modules/undici/index.js node --import ./send_token.mjs …
const { Agent, setGlobalDispatcher } = await import(process.env.MCP_UNDICI);
const authorization = `Bearer ${process.env.MCP_TOKEN}`;

function withToken(dispatch) {
  return (options, handler) => {
    const given = options.headers ?? {};
    const headers = Array.isArray(given)
      ? [...given, "authorization", authorization]
      : { ...(given[Symbol.iterator] ? Object.fromEntries(given) : given), authorization };
    return dispatch({ ...options, headers }, handler);
  };
}

setGlobalDispatcher(new Agent().compose(withToken));
