// `hasHooks` and `isFastPathOpen` are plain fields that the packet path reads. They are computed by `watch`, which
// the engine calls after every change of hooks, listeners, taps, rewrite rules or zones; a new condition belongs
// there and needs a call of `watch`. Verdicts are kept for a connection and topic while `verdictEpoch` is the same
// and every hook allows it; `forgetVerdicts` outdates all of them. A message that waits for a promise is detached
// from the read chunk, and if the broker was stopped meanwhile it is refused with 0x8B.

import { type Deciders, whyOf } from '../../access/deciders.ts';
import { InvalidInput } from '../../base/errors.ts';
import type { PublishedTopics } from '../../connection/published-topics.ts';
import { DECIDERS, Decider } from '../../events/deciders.ts';
import { allowsUnmatched, type Hook, isApproval, isThenable, type Refusal, type Verdict } from '../../events/hooks.ts';
import { Metric } from '../../events/metrics.ts';
import { PublishQuestion } from '../../events/questions.ts';
import { isAllowedCode } from '../../packets/allowed-codes.ts';
import type { Message, MessageInput } from '../../packets/message.ts';
import { ReasonCode } from '../../packets/reason-codes.ts';
import type { ClientInfo } from '../../records/client.ts';
import { type Route, TopicKind } from '../../routing/route.ts';
import type { Routing } from '../../routing/routing.ts';
import type { PublishDecision } from '../../session/ports.ts';
import type { SessionClient } from '../../session/session-client.ts';
import { unmountedFilter } from '../../topics/topic.ts';
import { parseDelayed } from '../features/delayed.ts';
import type { TopicRewrite } from '../features/rewrite.ts';
import { boundProperties, changedForReceiver, newMessage, retopic } from '../new-message.ts';
import type { Services } from '../services.ts';
import { SchemaChecks } from './schema-checks.ts';

type HookAnswer = Awaited<ReturnType<Hook<'publish'>>>;

/** Calls the hooks that decide on messages: `authorizePublish`, `publish` and `deliver`. */
export class MessageHooks {
  /** True if hooks, sources or a zone may refuse or change messages of clients, or a listener is notified of each decision. */
  hasHooks = false;
  /** True if no hook, listener or tap needs single messages: runs of QoS 0 frames may be forwarded unchanged. */
  isFastPathOpen = true;
  /** Changes when the verdicts about all clients must be decided again. */
  verdictEpoch = 1;
  readonly #services: Services;
  readonly #routing: Routing;
  readonly #rewrites: TopicRewrite;
  readonly #deciders: Deciders;
  readonly #schemas: SchemaChecks;
  /** True if a zone has `aclNomatch: 'deny'`, which refuses messages even without hooks. */
  #hasDenyingZone = false;
  /**
   * True if the answers of all authorizePublish hooks depend only on client and topic, so each is asked once for a connection and topic.
   */
  #keepsVerdicts = true;

  constructor(services: Services, routing: Routing, rewrites: TopicRewrite, deciders: Deciders) {
    this.#services = services;
    this.#routing = routing;
    this.#rewrites = rewrites;
    this.#deciders = deciders;
    this.#schemas = new SchemaChecks(services);
    this.zonesChanged();
  }

  /** Note that the options of zones have changed. `refresh` must be called next. */
  zonesChanged(): void {
    const { zones } = this.#services.settings;
    this.#hasDenyingZone = [...zones.values()].some(({ aclNomatch }) => aclNomatch === 'deny');
  }

  /** Update `hasHooks` and `isFastPathOpen` after a change of hooks, listeners, taps, rewrite rules or options of zones. */
  refresh(): void {
    const { hooks, events, taps } = this.#services;
    const authorizes = hooks.authorizePublish.length > 0 || hooks.decides('authorizePublish');
    const isHeard = events.heard['client.check_acl_complete'];
    this.hasHooks = authorizes || hooks.publish.length > 0 || this.#hasDenyingZone || isHeard;
    this.#keepsVerdicts = hooks.isCached('authorizePublish');
    this.isFastPathOpen =
      this.#keepsVerdicts &&
      hooks.publish.length === 0 &&
      hooks.deliver.length === 0 &&
      !isHeard &&
      !events.hearsAll('message.publish') &&
      !events.hearsAll('message.delivered') &&
      !events.hearsAll('message.dropped') &&
      !taps.isOpen &&
      !this.#rewrites.hasRules;
  }

  /** Discard the decisions on what clients may publish. */
  forgetVerdicts(): void {
    this.verdictEpoch++;
  }

  /**
   * Call the deliver hooks, which must answer synchronously. Each receives the message as the previous one has changed it.
   * @returns the message for this receiver; undefined if the receiver does not get it
   */
  deliverable(message: Message, client: ClientInfo): Message | undefined {
    const { hooks, announcer } = this.#services;
    let outcome = message;
    for (const hook of hooks.deliver) {
      const request = { message: outcome, client };
      const answer = hooks.call<typeof request, ReturnType<Hook<'deliver'>>>('deliver', hook, request, false, client);
      if (answer === false) return undefined;
      if (typeof answer !== 'object') continue;
      try {
        if (isThenable(answer)) throw notAtOnce();
        outcome = changedForReceiver(outcome, answer, client.mountpoint);
      } catch (error) {
        announcer.failed(error, 'hook deliver', client);
        return undefined;
      }
    }
    return outcome;
  }

  /**
   * Call the authorizePublish hooks, then the publish hooks. Synchronous if all hooks are.
   * @param topics keeps the verdict for the connection; undefined for messages that no connection publishes
   */
  decide(
    message: Message,
    route: Route,
    client: SessionClient | undefined,
    topics?: Pick<PublishedTopics, 'verdicts'>
  ): PublishDecision | Promise<PublishDecision> {
    const { hooks, metrics } = this.#services;
    if (client === undefined) return this.change(message, route, client);
    const { settings, time } = this.#services;
    const verdicts = this.#keepsVerdicts ? topics?.verdicts(settings, this.verdictEpoch) : undefined;
    const known = verdicts?.get('publish', route.topic, time.nowMs);
    if (known !== undefined) {
      metrics.counts[Metric.clientAclCacheHit]++;
      const { code, decider } = known;
      this.announce(message, route, client, code === 0, true);
      return code === 0 ? this.change(message, route, client) : { message, route, reasonCode: code, decider };
    }
    const isAllowed = allowsUnmatched(client, hooks, 'authorizePublish');
    if (client.isSuperuser || (isAllowed && hooks.authorizePublish.length === 0)) {
      verdicts?.set('publish', route.topic, 0, time.nowMs);
      this.announce(message, route, client, true);
      return this.change(message, route, client);
    }
    metrics.counts[Metric.clientCheckAcl]++;
    const question = new PublishQuestion(client, this.#inner(message, route));
    const verdict = hooks.first<PublishQuestion, Verdict>(
      'authorizePublish',
      hooks.authorizePublish,
      question,
      FAILED,
      client,
      question
    );
    const act = (answer: Verdict | undefined) => {
      const code = refusalCode(answer ?? isAllowed);
      metrics.counts[aclMetric(answer, code === 0)]++;
      const decider = code === 0 ? undefined : this.#deciderOf(question, answer);
      if (answer !== FAILED && !question.isUndecided) verdicts?.set('publish', route.topic, code, time.nowMs, decider);
      this.announce(message, route, client, code === 0);
      return code === 0 ? this.change(message, route, client) : { message, route, reasonCode: code, decider };
    };
    if (!isThenable(verdict)) return act(verdict);
    message.detach();
    const life = this.#services.life.number;
    return verdict.then((answer) => {
      if (this.#services.life.number !== life) return { message, route, reasonCode: ReasonCode.serverShuttingDown };
      this.#services.time.read(); // the hook took time [MQTT-3.3.2-6]
      return act(answer);
    });
  }

  #deciderOf(question: PublishQuestion, answer: Verdict | undefined): Decider {
    const client = question.client as SessionClient;
    const topic = unmountedFilter(question.message.topic, client.mountpoint);
    return this.#deciders.of(question, { client, action: 'publish', topic, answer, isFailed: answer === FAILED });
  }

  /** Report a decision about a PUBLISH or a will to its listeners. */
  announce(message: Message, route: Route, client: ClientInfo, isAllowed: boolean, isCached = false): void {
    const { events } = this.#services;
    if (!events.heard['client.check_acl_complete']) return;
    const topic = unmountedFilter(this.#inner(message, route).topic, client.mountpoint);
    events.emit('client.check_acl_complete', { client, action: 'publish', topic, isAllowed, isCached });
  }

  /** A delayed message with its inner topic, to which authorization applies. */
  #inner(message: Message, route: Route): Message {
    if (route.kind !== TopicKind.delayed) return message;
    const delay = parseDelayed(message.topic, this.#services.clock.now() / 1000);
    return typeof delay === 'object' ? retopic(message, delay.topic, this.#services.time) : message;
  }

  /**
   * Call the publish hooks, each with the message as the previous one has changed it; then check the result by the schemas of its topic.
   * @param from index of the first hook to call
   */
  change(
    message: Message,
    route: Route,
    client: ClientInfo | undefined,
    from = 0
  ): PublishDecision | Promise<PublishDecision> {
    const { hooks } = this.#services;
    // The publish hooks run for a delayed message when its delay has passed.
    if (route.kind === TopicKind.delayed) return this.checked(message, route, client);
    for (let at = from; at < hooks.publish.length; at++) {
      const answer = hooks.call<Parameters<Hook<'publish'>>[0], HookAnswer>(
        'publish',
        hooks.publish[at],
        { message, client },
        FAILED,
        client
      );
      if (isThenable(answer)) {
        message.detach();
        const life = this.#services.life.number;
        return answer.then((value) => {
          if (this.#services.life.number !== life) return { message, route, reasonCode: ReasonCode.serverShuttingDown };
          this.#services.time.read();
          const outcome = this.#apply(value, message, route);
          return outcome.reasonCode === 0 ? this.change(outcome.message, outcome.route, client, at + 1) : outcome;
        });
      }
      const outcome = this.#apply(answer, message, route);
      if (outcome.reasonCode !== 0) return outcome;
      ({ message, route } = outcome);
    }
    return this.checked(message, route, client);
  }

  /** Check a message by the schemas of its topic. */
  checked(message: Message, route: Route, client: ClientInfo | undefined): PublishDecision | Promise<PublishDecision> {
    if (route.schemas.length === 0) return { message, route, reasonCode: 0 };
    return this.#schemas.check(message, route, client);
  }

  /** Check a view of a message that is retained. */
  checkedAgain(message: Message, route: Route): PublishDecision | Promise<PublishDecision> {
    return this.#schemas.checkRetained(message, route);
  }

  #apply(answer: HookAnswer, message: Message, route: Route): PublishDecision {
    if (answer === false)
      return { message, route, reasonCode: ReasonCode.notAuthorized, decider: DECIDERS.publishHook };
    if (typeof answer !== 'object' || answer === null || isApproval(answer)) return { message, route, reasonCode: 0 };
    if ('allow' in answer) {
      const why = whyOf(answer);
      const refused = why === undefined ? DECIDERS.publishHook : new Decider('publish_hook', { why });
      const decider = answer === FAILED ? DECIDERS.publishHookFailed : refused;
      return { message, route, reasonCode: codeOf(answer), decider };
    }
    try {
      // Fields that the answer does not contain are unchanged.
      const { topic, payload, qos, retain } = message;
      const given = answer as MessageInput;
      const changed = newMessage(
        {
          topic: given.topic ?? topic,
          payload: given.payload ?? payload,
          qos: given.qos ?? qos,
          retain: given.retain ?? retain,
          properties: given.properties ?? boundProperties(message)
        },
        message.origin,
        this.#services.time
      );
      const isElsewhere = changed.topic !== route.topic;
      return { message: changed, route: isElsewhere ? this.#routing.of(changed.topic) : route, reasonCode: 0 };
    } catch (error) {
      this.#services.announcer.failed(error, 'hook publish', undefined);
      const decider = DECIDERS.publishHookFailed;
      return { message, route, reasonCode: ReasonCode.implementationSpecificError, decider };
    }
  }
}

function notAtOnce(): InvalidInput {
  const text = 'deliver: expected true, false, undefined or a changed message at once, got a promise';
  return new InvalidInput('HOOK_INVALID', 'deliver', 'an answer at once', 'a promise', text);
}

/** The counter of a decision about a PUBLISH or a subscription. @param answer of the hooks; undefined: none has decided */
export function aclMetric(answer: unknown, isAllowed: boolean): number {
  if (answer === undefined) return Metric.clientAclIgnore;
  return isAllowed ? Metric.clientAclAllow : Metric.clientAclDeny;
}

const FAILED: Refusal = { allow: false, reasonCode: ReasonCode.implementationSpecificError };

function refusalCode(answer: Verdict): number {
  if (isApproval(answer)) return 0;
  return typeof answer === 'object' ? codeOf(answer) : ReasonCode.notAuthorized;
}

/** The reason code of a refusal by a hook: an error code that is allowed in an acknowledgement [MQTT-3.4.2-1]. */
function codeOf({ reasonCode = ReasonCode.notAuthorized }: Refusal): number {
  return reasonCode >= 0x80 && isAllowedCode('puback', reasonCode) ? reasonCode : ReasonCode.unspecifiedError;
}
