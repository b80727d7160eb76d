// The topics to which actions of rules publish, as far as their templates tell.

/** An action, or one that replaces it. */
interface Publishing {
  readonly name: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly fallbacks: readonly Publishing[];
}

/** The actions and sinks that publish at this broker: the parameter with the topic, and the values in its template. */
const PUBLISHING = {
  republish: { param: 'target_topic', values: /\$\{[^}]*\}/ },
  mqtt: { param: 'topic', values: /\{\{.*?\}\}/ }
} as const;

/**
 * Tell whether an action of a rule over events publishes to a topic.
 * @param isNamed leave out templates without a part of a name, which may be any topic
 */
export function publishesTo(
  { actions }: { readonly actions: readonly Publishing[] },
  topic: string,
  isNamed = false
): boolean {
  return actions.some(({ name, params, fallbacks }) => {
    const isLocal = name === 'republish' || (name === 'mqtt' && !params.server && !params.connectionSelector);
    const isOwn = isLocal && isTarget(name, params[PUBLISHING[name].param], topic, isNamed);
    return isOwn || publishesTo({ actions: fallbacks }, topic, isNamed);
  });
}

/** Tell whether a template may be a topic. @param isNamed see `publishesTo` */
export function isTarget(name: keyof typeof PUBLISHING, template: unknown, topic: string, isNamed = false): boolean {
  if (typeof template !== 'string') return false;
  const [head, ...rest] = template.split(PUBLISHING[name].values);
  const end = rest.at(-1);
  if (isNamed && /^\/*$/.test(`${head}${end ?? ''}`)) return false;
  return end === undefined
    ? topic === head
    : topic.length >= head.length + end.length && topic.startsWith(head) && topic.endsWith(end);
}
