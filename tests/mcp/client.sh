#!/usr/bin/env bash
# What the conformance suite starts as the client: `tracebook mcp` as a person uses it, for the scenario at hand. Its last
# argument is the address of the suite's server.
set -euo pipefail
url=${*: -1}
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
export HOME=$home XDG_CONFIG_HOME=$home/config TRACEBOOK_KEYRING=off
export BROWSER="node $(dirname "$0")/browser.mjs"
workspace=$home/workspace
mkdir -p "$workspace"
server=$url
mcp() { "$MCP_PROGRAM" --workspace "$workspace" mcp "$@"; }

# configure LINE…: names the server in the configuration, with lines under oauth.
configure() {
  server=suite
  printf 'mcp:\n  servers:\n    suite:\n      url: %s\n      oauth:\n' "$url" >"$workspace/config.yaml"
  printf '        %s\n' "$@" >>"$workspace/config.yaml"
}

# field NAME: a value of the scenario's context.
field() { node -p "JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT)['$1']"; }

# Calls a tool; signs in when the server asks for it, and once more when it wants more rights.
call_signed_in() {
  local round
  for round in 1 2; do
    if mcp call "$server" test-tool; then return; fi
    mcp login "$server"
  done
  mcp call "$server" test-tool
}

case $MCP_CONFORMANCE_SCENARIO in
  initialize) mcp tools "$server" ;;
  tools_call) mcp call "$server" add_numbers --arguments '{"a": 5, "b": 3}' ;;
  elicitation-sep1034-client-defaults) mcp call "$server" test_client_elicitation_defaults --yes ;;
  sse-retry) mcp call "$server" test_reconnection ;;
  auth/basic-cimd)
    configure 'client_id: https://conformance-test.local/client-metadata.json'
    call_signed_in
    ;;
  auth/cross-app-access-complete-flow)
    SUITE_SECRET=$(field client_secret)
    SUITE_IDENTITY=$(field idp_id_token)
    export SUITE_SECRET SUITE_IDENTITY
    configure 'grant: cross_app_access' "client_id: $(field client_id)" "client_secret: \${SUITE_SECRET}" \
      'identity_provider:' "  issuer: $(field idp_issuer)" "  token_endpoint: $(field idp_token_endpoint)" \
      "  client_id: $(field idp_client_id)" "  id_token: \${SUITE_IDENTITY}"
    mcp call "$server" test-tool
    ;;
  auth/pre-registration)
    SUITE_SECRET=$(field client_secret)
    export SUITE_SECRET
    configure "client_id: $(field client_id)" "client_secret: \${SUITE_SECRET}"
    call_signed_in
    ;;
  auth/client-credentials-*)
    # A secret is one line.
    SUITE_SECRET=$(node -p 'const c = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT);
      (c.client_secret ?? c.private_key_pem).replaceAll("\n", " ")')
    export SUITE_SECRET
    key=client_secret
    [ "$MCP_CONFORMANCE_SCENARIO" != auth/client-credentials-jwt ] || key=private_key
    id=$(node -p 'JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT).client_id')
    configure 'grant: client_credentials' "client_id: $id" "$key: \${SUITE_SECRET}"
    mcp call "$server" test-tool
    ;;
  auth/*) call_signed_in ;;
  *) echo "the scenario $MCP_CONFORMANCE_SCENARIO is not known" >&2 && exit 1 ;;
esac
