// The steps repeat the order of a real decision without taking it: bans, what is built in, superuser, then the
// functions of the hook in their order, then `aclNomatch`. Nothing is counted, cached or announced. A change of the
// order in `MessageHooks`, `FilterDecisions` or `Subscribing.check` has to be made here, too. Hooks of the app and
// sources that ask a server are called only on request (`ask`), because they may be slow or have effects.

import type { AccessControl } from '../../access/access-control.ts';
import type { FoundAccessRule } from '../../access/access-rules.ts';
import { isAddress } from '../../access/network.ts';
import { isSystem } from '../../access/rule.ts';
import { InvalidInput } from '../../base/errors.ts';
import { checkNames, checkObject } from '../../base/fields.ts';
import type { VerdictRecord } from '../../connection/verdicts.ts';
import type { DecisionStep } from '../../events/deciders.ts';
import { allowsUnmatched, type HookOrigin, isApproval, type Refusal } from '../../events/hooks.ts';
import { OpenQuestions, PublishQuestion, SubscribeQuestion } from '../../events/questions.ts';
import { ReasonCode } from '../../packets/reason-codes.ts';
import type { AccessRule, RuleAction } from '../../records/access-rule.ts';
import type { ClientInfo } from '../../records/client.ts';
import { SessionClient } from '../../session/session-client.ts';
import { isOfClients } from '../../topics/client-topics.ts';
import { checkTopicFilter, checkTopicName, innerFilter, mountedName } from '../../topics/topic.ts';
import { DEFAULT_ZONE } from '../configuration/options.ts';
import { parseDelayed } from '../features/delayed.ts';
import { newMessage } from '../new-message.ts';
import type { Services } from '../services.ts';
import type { SessionIndex } from '../sessions/session-index.ts';

/** A question about the rights of a client. */
export interface AccessQuestion {
  /** A client with a session is checked with the properties of that session, unless `username` or `remoteAddress` is given. */
  readonly clientId?: string | undefined;
  /** The user name. Default: none, or that of the session. */
  readonly username?: string | undefined;
  /** IP address. */
  readonly remoteAddress?: string | undefined;
  /** Zone of a client that has no session. Default: the default zone. */
  readonly zone?: string | undefined;
  /** The requested operation. */
  readonly action: RuleAction;
  /** The topic name of a message, or the topic filter of a subscription, as the client writes it. */
  readonly topic: string;
  /** Ask hooks of the app, and sources that query an external system, such as a server. Default false. */
  readonly ask?: boolean | undefined;
}

/** One step of a decision. */
export interface AccessStep {
  /** The participant that was asked in this step. */
  readonly by: DecisionStep;
  /** `none`: it does not decide about this; `unasked`: see `AccessQuestion.ask`; `failed`: it gave no answer, which denies. */
  readonly answer: 'allow' | 'deny' | 'none' | 'unasked' | 'failed';
  /** Name of the source. */
  readonly source?: string;
  /** The rule that decides. */
  readonly rule?: AccessRule;
  /** The index of the rule in the list of the source or of the client, from 0. */
  readonly index?: number;
  /** The reason code of a refusal. */
  readonly reasonCode?: number;
  /** The topic filter with which a hook has replaced the requested one. */
  readonly filter?: string;
}

/** The answer to an `AccessQuestion`. */
export interface AccessAnswer {
  /** `unknown`: a participant that was not asked may decide otherwise. */
  readonly access: 'allow' | 'deny' | 'unknown';
  /** The client that was checked. */
  readonly client: ClientInfo;
  /** True if it is the client of a session. */
  readonly hasSession: boolean;
  /** The topic after rewriting; of a delayed message, the topic to which it is published. */
  readonly topic: string;
  /** The steps of the decision, in order. The last one has decided. */
  readonly steps: readonly AccessStep[];
}

/** The parts of the broker that `AccessExplainer` uses. */
interface ExplainerHost {
  readonly access: AccessControl;
  readonly sessions: SessionIndex;
  readonly publishing: { readonly hooks: { readonly verdictEpoch: number } };
  readonly subscribing: { check(client: SessionClient, filter: string, hasId: boolean): number };
  readonly rewrites: { apply(topic: string, kind: RuleAction): string };
}

const NAMES: readonly (keyof AccessQuestion)[] = [
  'action',
  'ask',
  'clientId',
  'remoteAddress',
  'topic',
  'username',
  'zone'
];
/** The answer of a function that has failed. */
const FAILED: Refusal = { allow: false, reasonCode: ReasonCode.unspecifiedError };

/**
 * Explains the rights of a client, the participants that decide about them, and the cached decisions, without deciding: nothing is cached
 * or counted.
 */
export class AccessExplainer {
  readonly #services: Services;
  readonly #host: ExplainerHost;

  constructor(services: Services, host: ExplainerHost) {
    this.#services = services;
    this.#host = host;
  }

  /** @throws InvalidInput OPTION_UNKNOWN, OPTION_INVALID, TOPIC_NAME_INVALID, TOPIC_FILTER_INVALID */
  async explain(question: AccessQuestion): Promise<AccessAnswer> {
    check(question);
    const { access, sessions, rewrites } = this.#host;
    const { clientId = '', username, remoteAddress, action, ask = false } = question;
    const known = username === undefined && remoteAddress === undefined ? sessions.get(clientId)?.client : undefined;
    const client = known ?? this.#clientOf(question);
    const rewritten = rewrites.apply(question.topic, action);
    const delay = action === 'publish' ? parseDelayed(rewritten, this.#services.clock.now() / 1000) : undefined;
    const topic = typeof delay === 'object' ? delay.topic : rewritten;
    const steps: AccessStep[] = [];
    const isBanned = client.agreement.zone.enableBan && access.banned.find(client) !== undefined;
    if (isBanned) steps.push({ by: 'ban', answer: 'deny' });
    else await this.#decide({ client, action, topic, ask }, steps);
    const { answer } = steps[steps.length - 1];
    const isUnknown = steps.some((step) => step.answer === 'unasked');
    return {
      access: isUnknown ? 'unknown' : answer === 'allow' ? 'allow' : 'deny',
      client,
      hasSession: known !== undefined,
      topic,
      steps
    };
  }

  /** The cached decisions of the connection of a client. */
  kept(clientId: string): VerdictRecord[] {
    const { settings, time } = this.#services;
    const { sessions, publishing } = this.#host;
    time.read();
    const topics = sessions.get(clientId)?.connection?.reader.topics;
    return topics?.verdicts(settings, publishing.hooks.verdictEpoch).list(time.nowMs) ?? [];
  }

  /**
   * A client without a session. A record with its names decides whether it would be a superuser, unless the records are stopped. @throws
   * InvalidInput OPTION_INVALID
   */
  #clientOf({ clientId = '', username, remoteAddress, zone: name = DEFAULT_ZONE }: AccessQuestion): SessionClient {
    const { zones } = this.#services.settings;
    const zone = zones.get(name);
    if (zone === undefined) throw new InvalidInput('OPTION_INVALID', 'zone', [...zones.keys()].join(', '), name);
    const { clientIds, usernames, logins, hasStoppedRecords } = this.#host.access;
    const client = new SessionClient(zone, { transport: 'tcp', remoteAddress });
    client.identified(client.agreement, clientId, username);
    const byName = username === undefined ? [] : [usernames.get(username), logins.get(username)];
    const records = hasStoppedRecords ? [] : [clientIds.get(clientId), ...byName];
    const isSuperuser = records.some((record) => record?.isSuperuser === true);
    client.entitled(isSuperuser, undefined, undefined);
    return client;
  }

  /** Take the steps of a decision until one of them decides. */
  async #decide(asked: Asked, steps: AccessStep[]): Promise<void> {
    const { hooks } = this.#services;
    const { client, action } = asked;
    const refused = this.#builtIn(asked);
    if (refused !== 0) steps.push({ by: 'builtin', answer: 'deny', reasonCode: refused });
    else if (client.isSuperuser) steps.push({ by: 'superuser', answer: 'allow' });
    else if (action === 'subscribe' && isOfClients(innerFilter(asked.topic)))
      steps.push({ by: 'builtin', answer: 'allow' });
    else {
      const name = action === 'publish' ? 'authorizePublish' : 'authorizeSubscribe';
      const isAllowed = allowsUnmatched(client, hooks, name);
      if (await this.#ask(asked, hooks[name] as readonly AnyHook[], steps)) return;
      steps.push({ by: 'default', answer: isAllowed ? 'allow' : 'deny' });
    }
  }

  /** The decision that needs no hooks. @returns 0 or a reason code */
  #builtIn({ client, action, topic }: Asked): number {
    const { access, subscribing } = this.#host;
    if (action === 'subscribe') return subscribing.check(client, topic, false);
    const { maxTopicLevels } = client.agreement.zone;
    if (checkTopicName(topic, { maxLevels: maxTopicLevels }) !== undefined) return ReasonCode.topicNameInvalid;
    const mayPublish =
      !isSystem(client.mountpoint + topic) ||
      client.isSuperuser ||
      access.rules.decide(client, 'publish', topic) === true;
    return mayPublish ? 0 : ReasonCode.notAuthorized;
  }

  /** Ask the functions of a hook in order. @returns whether one has decided */
  async #ask(asked: Asked, list: readonly AnyHook[], steps: AccessStep[]): Promise<boolean> {
    const { hooks } = this.#services;
    for (const hook of list) {
      const origin = hooks.originOf(hook);
      if (origin !== undefined && 'rules' in origin) {
        const found = this.#find(origin.rules, asked);
        if (found === undefined) continue;
        steps.push(stepOf(found));
        return true;
      }
      const by = whoIs(origin);
      if (!asked.ask) {
        steps.push({ ...by, answer: 'unasked' });
        continue;
      }
      const answer = await this.#answerOf(asked, hook);
      const step = readAnswer(answer);
      steps.push({ ...by, ...step });
      if (step.filter !== undefined && step.filter !== asked.topic) return this.#askAboutChange(asked, hook, steps);
      if (step.answer !== 'none') return true;
    }
    return false;
  }

  /** Ask the other hooks about a filter with which a hook has replaced the requested one. */
  async #askAboutChange(asked: Asked, hook: AnyHook, steps: AccessStep[]): Promise<boolean> {
    const { filter: topic = asked.topic } = steps[steps.length - 1];
    const others = (this.#services.hooks.authorizeSubscribe as readonly AnyHook[]).filter((other) => other !== hook);
    const refused = this.#builtIn({ ...asked, topic });
    if (refused !== 0) steps.push({ by: 'builtin', answer: 'deny', reasonCode: refused });
    else if (!(await this.#ask({ ...asked, topic }, others, steps))) steps.push({ by: 'hook', answer: 'allow' });
    return true;
  }

  #find(place: 'first' | 'last', { client, action, topic }: Asked): FoundAccessRule | undefined {
    const isFilter = action === 'subscribe';
    return this.#host.access.rules.find(place, client, {
      action,
      topic: isFilter ? innerFilter(topic) : topic,
      isFilter
    });
  }

  async #answerOf({ client, action, topic }: Asked, hook: AnyHook): Promise<unknown> {
    const { hooks, time } = this.#services;
    if (action === 'publish') {
      const message = newMessage({ topic: mountedName(topic, client.mountpoint) ?? topic }, client, time);
      const question = new PublishQuestion(client, message);
      const answer = await hooks.call('authorizePublish', hook, question as never, FAILED, client, question);
      return question.isUndecided ? FAILED : answer;
    }
    const options = { qos: 0, noLocal: false, retainAsPublished: false, retainHandling: 0, id: undefined } as const;
    const question = new SubscribeQuestion(client, new OpenQuestions(), topic, options);
    const answer = await hooks.call('authorizeSubscribe', hook, question as never, FAILED, client, question);
    return question.isUndecided ? FAILED : answer;
  }
}

type AnyHook = (request: never) => unknown;

/** The subject of a decision. */
interface Asked {
  readonly client: SessionClient;
  readonly action: RuleAction;
  readonly topic: string;
  readonly ask: boolean;
}

function whoIs(origin: HookOrigin | undefined): Pick<AccessStep, 'by' | 'source'> {
  return origin !== undefined && 'source' in origin ? { by: 'source', source: origin.source } : { by: 'hook' };
}

function stepOf({ by, source, rule }: FoundAccessRule): AccessStep {
  return {
    by: by === 'source' ? 'rules' : by,
    answer: rule.isAllow ? 'allow' : 'deny',
    ...(source === undefined ? {} : { source }),
    rule: rule.content,
    ...(by === 'records' ? {} : { index: rule.order })
  };
}

/** @param answer of a hook that authorizes */
function readAnswer(answer: unknown): Pick<AccessStep, 'answer' | 'reasonCode' | 'filter'> {
  if (answer === undefined || answer === null) return { answer: 'none' };
  if (answer === FAILED) return { answer: 'failed' };
  if (isApproval(answer)) return { answer: 'allow' };
  if (typeof answer === 'number') return answer < 0x80 ? { answer: 'allow' } : { answer: 'deny', reasonCode: answer };
  if (typeof answer !== 'object') return { answer: 'deny' };
  const { filter, reasonCode } = answer as { readonly filter?: string; readonly reasonCode?: number };
  if (filter !== undefined) return { answer: 'allow', filter };
  return { answer: 'deny', ...(reasonCode === undefined ? {} : { reasonCode }) };
}

/** @throws InvalidInput OPTION_UNKNOWN, OPTION_INVALID, TOPIC_NAME_INVALID, TOPIC_FILTER_INVALID */
function check(question: AccessQuestion): void {
  checkObject(question, 'question');
  checkNames(question, NAMES, 'explain');
  const { action, topic } = question;
  if (action !== 'publish' && action !== 'subscribe')
    throw new InvalidInput('OPTION_INVALID', 'action', '"publish" or "subscribe"', action);
  for (const name of ['clientId', 'username', 'remoteAddress'] as const)
    if (question[name] !== undefined && typeof question[name] !== 'string')
      throw new InvalidInput('OPTION_INVALID', name, 'a string', question[name]);
  const { remoteAddress } = question;
  if (remoteAddress !== undefined && !isAddress(remoteAddress))
    throw new InvalidInput('OPTION_INVALID', 'remoteAddress', 'an IP address', remoteAddress);
  const isName = action === 'publish';
  const checkTopic = isName ? checkTopicName : checkTopicFilter;
  const fault = typeof topic === 'string' ? checkTopic(topic) : 'the topic must be a string';
  if (fault !== undefined)
    throw isName
      ? new InvalidInput('TOPIC_NAME_INVALID', 'topic', 'a topic name', topic, fault)
      : new InvalidInput('TOPIC_FILTER_INVALID', 'topic', 'a topic filter', topic, fault);
}
