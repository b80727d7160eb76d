import type { ErrorCodeEntry } from './row.ts';

/** Codes of listeners, HTTP, webhooks and bridges. */
export const ADAPTER_CODES = {
  ADDRESS_PRIVATE: {
    about: 'A host has a private address, which is not allowed here.',
    remedy: 'Use a public address, or leave out the option `publicOnly`.'
  },
  AEDES_UNAVAILABLE: {
    about: 'An option or method of Aedes is not available.',
    remedy: 'Use the replacement that the message names.'
  },
  BRIDGE_CLOSED: { about: 'This broker closed the bridge.', remedy: 'The message names the reason.' },
  BRIDGE_PROTOCOL: { about: 'The remote server of a bridge violates the protocol.', remedy: 'Check the server.' },
  BRIDGE_QUOTA: {
    about: 'A server refused a message of a bridge for now; it is sent again.',
    remedy: 'Raise the quota of that server.'
  },
  BRIDGE_REFUSED: { about: 'A server refused the bridge.', remedy: 'Check its credentials and rights there.' },
  BRIDGE_SESSION: {
    about: 'The session of a bridge at this broker was deleted.',
    remedy: 'Leave that session to the bridge, which connects again on its own.'
  },
  BRIDGE_STOPPED: { about: 'The bridge was stopped while it connected.', remedy: 'Start it again.' },
  BRIDGE_TIMEOUT: {
    about: 'The remote server of a bridge no longer answers.',
    remedy: 'It connects again on its own.'
  },
  DESCRIPTORS_SHORT: {
    about: 'The process has few file descriptors left, and a listener closes new connections.',
    remedy: 'Raise the limit of open files.'
  },
  ENTRY_DROPPED: {
    about: 'An entry of a queue to a target was dropped.',
    remedy: 'Raise the limits of the queue, or check the target.'
  },
  FILE_UNREADABLE: { about: 'A file cannot be read.', remedy: 'Check path and permissions.' },
  FILE_UNWRITABLE: { about: 'A file cannot be written.', remedy: 'Check path and permissions.' },
  HEADER_INVALID: { about: 'A header would have control characters.', remedy: 'Correct the template.' },
  HTTP_BODY_TOO_LARGE: { about: 'The answer of a server is too large.', remedy: 'Check the server.' },
  HTTP_FAILED: { about: 'A request failed or was answered with an error.', remedy: 'Check the server and the URL.' },
  HTTP_STATUS: {
    about: 'A server answered with a status that is not a success.',
    remedy: 'Check the server and the URL.'
  },
  HTTP_TIMEOUT: { about: 'A server did not answer in time.', remedy: 'Check the server, or raise the timeout.' },
  LISTENER_BIND_FAILED: {
    about: 'A listener cannot use its address.',
    remedy: 'The message names the remedy: another port, rights, or the process that has it.'
  },
  LISTENER_WITHOUT_TLS: {
    about: 'The listener has no certificates to reload.',
    remedy: 'Call `reload` of TLS listeners only.'
  },
  NO_CREDENTIALS: {
    about: 'An HTTP interface has no credentials, so it refuses every request.',
    remedy: 'Give credentials, or add an application.'
  },
  OUTBOX_CLOSED: { about: 'The outbox is closed.', remedy: 'Open it again.' },
  OUTBOX_IN_USE: {
    about: 'An outbox of this name is open already.',
    remedy: 'Use another name, or close the first one.'
  },
  OUTBOX_STOPPED: { about: 'The outbox has stopped.', remedy: 'Start it again.' },
  PACKAGE_MISSING: {
    about: 'A package that this feature needs is not installed.',
    remedy: 'Install it with the command in the message.'
  },
  PATH_INVALID: { about: 'The path of a request would have a segment `.` or `..`.', remedy: 'Correct the template.' },
  PLUGIN_REGISTERED: {
    about: 'The Fastify app has the plugin already.',
    remedy: 'Register it once, in the outermost context that uses the broker.'
  },
  PROXY_HEADER_INVALID: {
    about: 'A trusted proxy sent something other than an IP address as the address of a client.',
    remedy: 'Check the proxy and the option `proxyHeader`; the address of the proxy counts.'
  },
  SEND_FAILED: {
    about: 'A delivery to a target failed; `isFinal` says whether it is repeated.',
    remedy: 'Check the target.'
  },
  SEND_TIMEOUT: { about: 'A target did not acknowledge in time.', remedy: 'Check the target.' },
  TLS_INVALID: { about: 'Certificates or keys cannot be used.', remedy: 'The message names the file and the cause.' },
  WEBHOOK_WITHOUT_RULES: {
    about: 'The setting `web.hook.api.url` has no rule, so the webhook sends nothing.',
    remedy: 'Add rules, or use the option `url`, which sends all events.'
  }
} as const satisfies Readonly<Record<string, ErrorCodeEntry>>;
