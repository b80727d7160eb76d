/** Names in messages are truncated to this length. */
const MAX_NAME = 256;
/** Longer messages are truncated. */
const MAX_MESSAGE = 8_192;

/** A message with long names truncated, because they come from the request. */
export function shortened(message: string): string {
  if (message.length <= MAX_NAME) return message;
  const short = message.replace(/"([^"]+)"/g, (all, name: string) =>
    name.length <= MAX_NAME ? all : `"${name.slice(0, MAX_NAME)}..."`
  );
  return short.length <= MAX_MESSAGE ? short : `${short.slice(0, MAX_MESSAGE)}...`;
}
