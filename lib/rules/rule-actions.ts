// A list of actions is never changed: a change of the rule makes a new list, which takes over the counters, and
// retires the old one, whose actions are closed when their last outcome is known. The outcome of a local action is
// often known at once, that of a sending one when its entry leaves the outbox, perhaps in another process (`resume`):
// then output and event are in the head of the entry. An event is detached from its read chunk and kept only if
// something follows from an outcome, because it holds the whole message.

import { asError, BrokerError, errorText, show } from '../base/errors.ts';
import { hideSecrets } from '../base/secrets.ts';
import { isThenable } from '../events/hooks.ts';
import type { Value } from '../sql/values.ts';
import { type ActionDefinition, allActions, type RuleDefinition } from './definition.ts';
import type { Kinds } from './kinds.ts';
import { checkParams, hideAll, RESOURCE_PARAMS } from './params.ts';
import type { RuleEngineParts } from './parts.ts';
import { OwnTarget } from './targets/action-targets.ts';
import type { RuleResource } from './targets/rule-resource.ts';
import type { Settled } from './targets/target-queue.ts';
import { cascadeOf, keep, type Trigger } from './trigger.ts';
import type { ActionState, ActionType, LocalAction, Params, RuleEvent, SendingAction } from './types.ts';

/** Maximum number of concurrent calls of one action. */
const MAX_CALLS = 1000;

/** An action that is ready to run. */
interface RunningAction {
  readonly definition: ActionDefinition;
  readonly shown: Params;
  readonly made: LocalAction | SendingAction;
  /** Keeps the outputs of a `SendingAction` until they are sent: its resource, or its own target. Undefined for a `LocalAction`. */
  readonly queue: RuleResource | OwnTarget | undefined;
  readonly fallbacks: readonly RunningAction[];
  counts: Counts;
}

/**
 * The counters of an action. An action that replaces it takes them over, because outcomes of the former one may still
 * be pending.
 */
interface Counts {
  taken: number;
  success: number;
  failed: number;
  /** Number of calls in progress. */
  calls: number;
  /** The reason of the last outcome, if that was a failure. */
  lastError: Error | undefined;
}

/** Called when the outcome of an action is known. */
type Done = (isSuccess: boolean) => void;

/**
 * Maximum number of characters that the actions of a rule send for one event. The queue of a resource has room for half
 * of it.
 */
const MAX_PREPARED = 67_108_864;

/** The actions of a rule. They are created when the rule is attached, and replaced as a whole. */
export class RuleActionList {
  readonly #ruleId: string;
  readonly #parts: RuleEngineParts;
  readonly #mode: RuleDefinition['onActionFailed'];
  readonly #actions: readonly RunningAction[];
  /** Number of pending outcomes. The actions are closed when there are none left. */
  #awaited = 0;
  #isRetired = false;
  #isClosed = false;

  private constructor(
    ruleId: string,
    mode: RuleDefinition['onActionFailed'],
    actions: readonly RunningAction[],
    parts: RuleEngineParts
  ) {
    this.#ruleId = ruleId;
    this.#mode = mode;
    this.#actions = actions;
    this.#parts = parts;
  }

  /**
   * Create the actions of a rule.
   * @throws NotFound ACTION_NOT_FOUND; InvalidInput PARAM_REQUIRED, PARAM_INVALID; BrokerError
   *   RESOURCE_NOT_INITIALIZED, ACTION_FAILED
   */
  static async make(
    ruleId: string,
    { actions, onActionFailed }: Pick<RuleDefinition, 'actions' | 'onActionFailed'>,
    parts: RuleEngineParts
  ): Promise<RuleActionList> {
    const made: RunningAction[] = [];
    try {
      for (const definition of actions) made.push(await makeAction(ruleId, definition, parts));
    } catch (error) {
      for (const action of made) dropAction(action, ruleId, parts);
      throw error;
    }
    return new RuleActionList(ruleId, onActionFailed, made, parts);
  }

  get states(): ActionState[] {
    return this.#actions.map(stateOf);
  }

  /** Set the counters to 0. */
  reset(): void {
    for (const { counts } of everyOf(this.#actions)) counts.taken = counts.success = counts.failed = 0;
  }

  /** Take over the counters of the actions that the previous list also contains. */
  adoptCounters(before: RuleActionList): void {
    const known = new Map([...everyOf(before.#actions)].map(({ definition, counts }) => [definition.id, counts]));
    for (const action of everyOf(this.#actions)) action.counts = known.get(action.definition.id) ?? action.counts;
  }

  /** Open the queues of targets of actions. Those that follow an action are opened before it, as its stored entries may expire. */
  open(): void {
    for (const { queue } of [...everyOf(this.#actions)].reverse()) if (queue instanceof OwnTarget) queue.open();
  }

  /** Run the actions for the outputs of an event, one after the other for each output. */
  run(output: Value, trigger: Trigger): void {
    this.#runFrom(0, output, trigger);
  }

  /**
   * Continue after an action that ran before a restart and whose outcome is now known, unless the actions are closed.
   */
  resume(
    actionId: string,
    isSuccess: boolean,
    error: Error | undefined,
    origin: { readonly output: Value; readonly event: RuleEvent } | undefined
  ): void {
    const action = [...everyOf(this.#actions)].find(({ definition }) => definition.id === actionId);
    if (action === undefined) return;
    action.counts.taken++; // its run was counted before the restart
    this.#count(action, isSuccess, error, undefined);
    if (origin === undefined || this.#isClosed) return;
    const { output, event } = origin;
    const trigger = { event, bytes: 0, prepared: 0 };
    if (!isSuccess) this.#fallBack(action, output, trigger);
    const at = this.#actions.indexOf(action);
    if (at !== -1 && isSuccess && this.#mode === 'stop') this.#runFrom(at + 1, output, trigger);
  }

  /** Stop using the actions for the rule. They are closed when all their outcomes are known. */
  retire(): void {
    if (this.#isRetired) return;
    this.#isRetired = true;
    for (const action of this.#actions) retireAction(action);
    this.#closeIfDone();
  }

  #runFrom(from: number, output: Value, trigger: Trigger): void {
    const actions = this.#actions;
    for (let at = from; at < actions.length; at++) {
      const action = actions[at];
      const follows = this.#mode === 'stop' && at + 1 < actions.length;
      const done =
        follows || action.fallbacks.length > 0 ? this.#then(action, output, trigger, follows, at) : undefined;
      const outcome = this.#act(action, output, trigger, follows, done);
      if (outcome === undefined) {
        if (follows) return; // the later actions wait for the outcome
        continue;
      }
      if (outcome) continue;
      this.#fallBack(action, output, trigger);
      if (this.#mode === 'stop') return;
    }
  }

  #fallBack({ fallbacks }: RunningAction, output: Value, trigger: Trigger): void {
    for (const fallback of fallbacks) {
      const done = fallback.fallbacks.length > 0 ? this.#then(fallback, output, trigger, false, 0) : undefined;
      if (this.#act(fallback, output, trigger, false, done) === false) this.#fallBack(fallback, output, trigger);
    }
  }

  /**
   * The continuation after an action. Created only if there are fallbacks or a next action, because it keeps output and
   * event in memory.
   */
  #then(action: RunningAction, output: Value, trigger: Trigger, follows: boolean, at: number): Done {
    return (isSuccess) => {
      if (!isSuccess) this.#fallBack(action, output, trigger);
      else if (follows) this.#runFrom(at + 1, output, trigger);
    };
  }

  /**
   * Run one action.
   * @param follows whether later actions wait for its outcome
   * @param done the continuation after its outcome
   * @returns whether it succeeded; undefined if `done` is called when the outcome is known
   */
  #act(
    action: RunningAction,
    output: Value,
    trigger: Trigger,
    follows: boolean,
    done: Done | undefined
  ): boolean | undefined {
    const { counts } = action;
    counts.taken++;
    const { event, bytes, topic } = trigger;
    const { made, queue, definition } = action;
    try {
      if ('prepare' in made) {
        const isAwaited = queue!.isDurable && (follows || action.fallbacks.length > 0);
        const head = { actionId: definition.id, origin: isAwaited ? { output, event } : undefined };
        this.#awaited++;
        try {
          if (done !== undefined) keep(event);
          if (trigger.prepared > MAX_PREPARED)
            throw new BrokerError('ACTION_FAILED', `one event would send more than ${MAX_PREPARED} characters`);
          const content = made.prepare(output, event);
          if (content === null) {
            this.#awaited--;
            return this.#count(action, true, undefined, topic);
          }
          checkContent(content);
          trigger.prepared += content.length;
          const settled: Settled = (isSent, error) => this.#finish(action, isSent, error, topic, done);
          const keptBytes = done === undefined ? 0 : bytes;
          if (queue instanceof OwnTarget) queue.add(this.#ruleId, head, content, settled, keptBytes, cascadeOf(event));
          else queue!.add(this.#ruleId, head, content, settled, keptBytes);
        } catch (error) {
          this.#awaited--;
          throw error;
        }
        return undefined;
      }
      if (counts.calls >= MAX_CALLS)
        throw new BrokerError('ACTION_FAILED', `more than ${MAX_CALLS} calls of the action are in progress`);
      const answer = made.run(output, event);
      if (!isThenable(answer)) return this.#count(action, true, undefined, topic);
      if (done !== undefined) keep(event);
      counts.calls++;
      this.#awaited++;
      Promise.resolve(answer).then(
        () => this.#ended(action, true, undefined, topic, done),
        (error: unknown) => this.#ended(action, false, error, topic, done)
      );
      return undefined;
    } catch (error) {
      return this.#count(action, false, error, topic);
    }
  }

  #ended(action: RunningAction, isSuccess: boolean, error: unknown, topic?: string, done?: Done): void {
    action.counts.calls--;
    this.#finish(action, isSuccess, error, topic, done);
  }

  #finish(action: RunningAction, isSuccess: boolean, error: unknown, topic?: string, done?: Done): void {
    this.#count(action, isSuccess, error, topic);
    done?.(isSuccess);
    this.#awaited--;
    this.#closeIfDone();
  }

  /** @param topic of the message that caused the action */
  #count(action: RunningAction, isSuccess: boolean, error: unknown, topic: string | undefined): boolean {
    const { counts } = action;
    if (isSuccess) {
      counts.success++;
      counts.lastError = undefined;
    } else {
      counts.failed++;
      counts.lastError = asError(error);
      reportFailure(action.definition.id, this.#ruleId, this.#parts, error, topic);
    }
    this.#parts.host.counted(isSuccess ? 'actions.success' : 'actions.failure');
    return isSuccess;
  }

  #closeIfDone(): void {
    if (!this.#isRetired || this.#awaited > 0) return;
    this.#isClosed = true;
    for (const action of this.#actions) closeAction(action, this.#ruleId, this.#parts);
  }
}

/** The ids of the resources that actions use. */
export function resourcesIn(actions: readonly ActionDefinition[]): string[] {
  return allActions(actions).flatMap(({ params: { $resource } }) => (typeof $resource === 'string' ? [$resource] : []));
}

async function makeAction(
  ruleId: string,
  definition: ActionDefinition,
  parts: RuleEngineParts
): Promise<RunningAction> {
  const { name, params, run } = definition;
  const made =
    run === undefined ? await parts.targets.open(definition, ruleId, () => makeOf(ruleId, definition, parts)) : { run };
  const action: RunningAction = {
    ...{ definition, made, queue: made instanceof OwnTarget ? made : parts.resources.find(`${params.$resource}`) },
    counts: { taken: 0, success: 0, failed: 0, calls: 0, lastError: undefined },
    shown: shownParams(name, params, parts.kinds),
    fallbacks: []
  };
  try {
    const fallbacks = action.fallbacks as RunningAction[];
    for (const fallback of definition.fallbacks) fallbacks.push(await makeAction(ruleId, fallback, parts));
  } catch (error) {
    dropAction(action, ruleId, parts);
    throw error;
  }
  return action;
}

/** Create an action of the type that its name denotes now. */
async function makeOf(
  ruleId: string,
  definition: ActionDefinition,
  parts: RuleEngineParts
): Promise<LocalAction | SendingAction> {
  const { id, name, params } = definition;
  await parts.kinds.find([definition]);
  const type = parts.kinds.action(name);
  const resource = resourceFor(type, params, parts);
  const checked = checkParams(type.params, type.connected?.(params) ?? params, `the action "${type.name}"`);
  const config = resource?.definition.config ?? {};
  const create = type.create ?? type.make;
  let made: LocalAction | SendingAction | undefined;
  try {
    made = await create?.call(type, checked, { ruleId, actionId: id, node: parts.host.node, config });
  } catch (error) {
    if (error instanceof BrokerError) throw error;
    const why = errorText(error);
    throw new BrokerError('ACTION_FAILED', `the action "${type.name}" cannot be created: ${why}`, { cause: error });
  }
  if (!isAction(made)) {
    const fault = 'create() must return an object with run() or prepare()';
    throw new BrokerError('ACTION_FAILED', `the action "${type.name}" cannot be created: ${fault}`);
  }
  if ('prepare' in made && made.target === undefined && resource === undefined)
    throw new BrokerError(
      'ACTION_FAILED',
      `the action "${type.name}" has prepare(), but uses no resource: list the resource types in types, return a target, or use run()`
    );
  return made;
}

/** Check whether an action type of the app has returned a valid action. */
function isAction(made: unknown): made is LocalAction | SendingAction {
  if (typeof made !== 'object' || made === null) return false;
  return typeof ('prepare' in made ? made.prepare : (made as Partial<LocalAction>).run) === 'function';
}

/** @throws BrokerError ACTION_FAILED if an action type of the app has prepared a value that cannot be sent */
function checkContent(content: unknown): void {
  if (typeof content === 'string' || content instanceof Uint8Array) return;
  if (isThenable(content)) Promise.resolve(content).catch(() => undefined); // the action has failed in any case
  throw new BrokerError('ACTION_FAILED', `prepare() must return a string or a Buffer, but returned ${show(content)}`);
}

/** The resource that an action uses. @throws BrokerError RESOURCE_NOT_INITIALIZED */
function resourceFor(
  { name, types = [] }: ActionType,
  params: Params,
  parts: RuleEngineParts
): RuleResource | undefined {
  if (types.length === 0) return undefined;
  const { $resource: id } = checkParams(RESOURCE_PARAMS, params, `the action "${name}"`) as {
    $resource: string;
  };
  const resource = parts.resources.find(id);
  const fail = (why: string) => new BrokerError('RESOURCE_NOT_INITIALIZED', why);
  if (resource === undefined) throw fail(`resource "${id}" does not exist`);
  if (!types.includes(resource.definition.type))
    throw fail(
      `the action "${name}" uses resources of type ${types.join(' or ')}, but "${id}" is a ${resource.definition.type}`
    );
  if (!resource.isMade) throw fail(`the resource "${id}" cannot be used: ${resource.state.lastError?.message}`);
  return resource;
}

function* everyOf(actions: readonly RunningAction[]): Generator<RunningAction> {
  for (const action of actions) {
    yield action;
    yield* everyOf(action.fallbacks);
  }
}

function stateOf({ definition, shown, counts, queue, fallbacks }: RunningAction): ActionState {
  const { id, name } = definition;
  const { taken, success, failed } = counts;
  const lastError = queue?.lastError ?? counts.lastError;
  return {
    ...{ id, name, params: shown, counters: { taken, success, failed } },
    ...(queue instanceof OwnTarget && { size: queue.size }),
    ...(lastError && { lastError }),
    fallbacks: fallbacks.map(stateOf)
  };
}

/** The actions of a definition that is not running. */
export function statesOf(actions: readonly ActionDefinition[], kinds: Kinds): ActionState[] {
  const state = ({ id, name, params, fallbacks }: ActionDefinition): ActionState => ({
    ...{ id, name, counters: { taken: 0, success: 0, failed: 0 } },
    params: shownParams(name, params, kinds),
    fallbacks: fallbacks.map(state)
  });
  return actions.map(state);
}

/** Parameters with secrets shown as `******`; all of them, if the kind is not registered. */
function shownParams(name: string, params: Params, kinds: Kinds): Params {
  const table = kinds.paramsOf(name);
  return table === undefined ? hideAll(params) : hideSecrets(table, params);
}

/** Close an action that is in no list. */
function dropAction(action: RunningAction, ruleId: string, parts: RuleEngineParts): void {
  retireAction(action);
  closeAction(action, ruleId, parts);
}

function retireAction(action: RunningAction): void {
  for (const { queue } of everyOf([action])) if (queue instanceof OwnTarget) queue.retire();
}

function closeAction(action: RunningAction, ruleId: string, parts: RuleEngineParts): void {
  for (const { made, queue, definition } of everyOf([action])) {
    const close = async () => (queue instanceof OwnTarget ? parts.targets.release(queue) : made.close?.());
    close().catch((error) => reportFailure(definition.id, ruleId, parts, error));
  }
}

function reportFailure(
  actionId: string,
  ruleId: string,
  { actionFailed }: RuleEngineParts,
  error: unknown,
  topic?: string
): void {
  actionFailed(ruleId, actionId, error, topic);
}
