// Topics below `$client/<client id>/` belong to one client: only it subscribes there, so that no other client reads the
// responses to its requests. The client id is one level; characters that would end or change the level are replaced.

const PREFIX = '$client/';

/** The topic of the responses to the requests of a client: `$client/<client id>/response`, with `%`, `/`, `+` and `#` of the id as `%25` and so on. */
export function responseTopicOf(clientId: string): string {
  return `${PREFIX}${levelOf(clientId)}/response`;
}

/** Tell whether a topic name, or a topic filter without share prefix, is below `$client`. */
export function isOfClients(topic: string): boolean {
  return topic.startsWith('$client') && (topic.length === 7 || topic.charCodeAt(7) === 0x2f);
}

/** Tell whether a topic name, or a topic filter without share prefix, is below `$client/<client id>/`. */
export function isOwnTopic(clientId: string, topic: string): boolean {
  return topic.startsWith(`${PREFIX}${levelOf(clientId)}/`);
}

function levelOf(clientId: string): string {
  return clientId.replace(/[%/+#]/g, encodeURIComponent);
}
