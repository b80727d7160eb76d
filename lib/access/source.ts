import type { Clock } from '../base/clock.ts';
import { InvalidInput } from '../base/errors.ts';
import { unknownKey } from '../base/fields.ts';
import type { Approval, AuthenticateRequest, Awaitable, Challenge, Verdict } from '../events/hooks.ts';
import type { AccessRule, RuleAction } from '../records/access-rule.ts';
import type { ClientInfo } from '../records/client.ts';

/** A question to a source about the rights of a client. */
export interface AuthorizeRequest<Data = unknown> {
  /** The client. */
  readonly client: ClientInfo<Data>;
  /** The requested operation. */
  readonly action: RuleAction;
  /** The topic name of a message, or the topic filter of a subscription, without a share prefix. */
  readonly topic: string;
  /**
   * Aborted when the time for the answer has passed, and for a subscription when the connection closes. A message is published even if the
   * connection closes before the answer. The signal is created when it is read for the first time.
   */
  readonly signal: AbortSignal;
  /**
   * Declare that the source cannot decide, because what it has to ask has failed. The answer that follows (false, or undefined to have the
   * next source asked) is not cached, and the source is asked again soon. A source that throws, rejects or gives no answer in time counts
   * as undecided, too.
   */
  undecided(): void;
}

/** The services that the broker offers to a source. */
export interface SourceContext {
  /** The clock of the broker. */
  readonly clock: Clock;
  /** Replace the access rules that the broker holds for this source. @throws InvalidInput as `rulesOf` */
  setRules(rules: readonly AccessRule[]): void;
  /**
   * Check a password on another thread, in turn with the logins of other addresses. The time does not depend on whether the name exists.
   * @param hash undefined: the name is unknown, and the answer is false
   * @param check checks a hash of a format that `passwordCheckOf` does not know
   * @throws BrokerError PASSWORD_QUEUE_FULL; the reason of the signal; PASSWORD_HASH_INVALID
   */
  verifyPassword(
    hash: string | undefined,
    request: AuthenticateRequest,
    check?: (password: Buffer) => Promise<boolean>
  ): Promise<boolean>;
  /** Add a login record, unless there is one of this name. Resolves when it is persisted. */
  seedLogin(name: string, password: string, isSuperuser: boolean): Promise<void>;
  /** Ask again what clients may do, because the source would answer differently now. @param clientId default: all clients */
  invalidate(clientId?: string): void;
  /** Report an error that has no caller to throw to, as an `error` event. */
  failed(error: unknown, during: string): void;
}

/**
 * A source of authentication, of access rules, or of both, as the option `auth` and `broker.access.create` take it. Sources are asked in the
 * order in which they were added; the records of the broker are asked first.
 *
 * `Data` is the type of what the source keeps with clients (`Approval.clientData`); `never` if it keeps nothing, so that it fits every
 * broker.
 */
export interface AuthSource<Data = unknown> {
  /** Identifies the source among those of a broker, for example `jwt`. */
  readonly name: string;
  /**
   * Time that `authenticate` and `authorize` may take, in milliseconds; 0: the source limits it itself, and must answer every question.
   * Default: `hookTimeout`.
   */
  readonly timeoutMs?: number;
  /**
   * The decisions that the source takes part in. With a source of authentication, unknown clients are refused by default; with a source of
   * authorization, so are operations that no rule allows. Default: derived from the functions that the source has.
   */
  readonly provides?: readonly ('authentication' | 'authorization')[];
  /**
   * Evaluate the access rules of this source after all other sources and hooks have been asked, in any order of the sources. Default false.
   */
  readonly hasLastRules?: boolean;
  /** Prepare, for example read files. If this rejects, the broker does not start, or `broker.access.create` rejects. */
  open?(context: SourceContext): Awaitable<void>;
  /** Release everything that `open` has opened. */
  close?(): Awaitable<void>;
  /** Read files again. If this rejects, the previous content stays in use. */
  reload?(): Awaitable<void>;
  /** Decide who a client is; see `Hooks.authenticate`. undefined: the source does not know the client, and the next one is asked. */
  authenticate?(
    request: AuthenticateRequest<[Data] extends [never] ? unknown : Data>
  ): Awaitable<Verdict | Approval<Data> | Challenge>;
  /**
   * Decide what a client may do, if the rules that the broker holds do not. Answers are cached for `aclCacheTtl`; after that, sources are
   * asked again about subscriptions. undefined: the next source is asked. While the source cannot answer, it declares that by
   * `AuthorizeRequest.undecided`.
   */
  authorize?(request: AuthorizeRequest<[Data] extends [never] ? unknown : Data>): Awaitable<Verdict>;
}

/** A user of `users`. */
export interface UserInput {
  /** The user name. */
  readonly username: string;
  /** The password, in clear text. */
  readonly password: string;
  /** Exempt the client from access control. Default false. */
  readonly isSuperuser?: boolean;
}

/**
 * A source with users that are written in the code of the app. They become login records (`broker.access.logins`) when the broker starts.
 * A record that exists already stays as it is, so a password that was changed at run time is not changed back by a restart.
 * @throws InvalidInput OPTION_INVALID, OPTION_UNKNOWN
 */
export function users(list: readonly UserInput[]): AuthSource<never> {
  if (!Array.isArray(list)) {
    const expected = 'a list of users, such as [{ username, password }]';
    const message = `users: expected ${expected}, got ${kindOf(list)}`; // the value may contain passwords
    throw new InvalidInput('OPTION_INVALID', 'users', expected, undefined, message);
  }
  list.forEach(checkUser);
  return {
    name: 'users',
    provides: ['authentication'],
    open: async ({ seedLogin }) => {
      for (const { username, password, isSuperuser = false } of list) await seedLogin(username, password, isSuperuser);
    }
  };
}

/** A source with access rules that are written in the code of the app. The first rule that applies decides. */
export function acl(rules: readonly AccessRule[]): AuthSource<never> {
  return { name: 'acl', provides: ['authorization'], open: ({ setRules }) => setRules(rules) };
}

const USER_KEYS: readonly string[] = ['username', 'password', 'isSuperuser'];

function checkUser(user: UserInput, at: number): void {
  const place = `users[${at}]`;
  if (typeof user !== 'object' || user === null)
    throw new InvalidInput('OPTION_INVALID', place, 'an object with username and password', typeof user);
  for (const key of Object.keys(user)) if (!USER_KEYS.includes(key)) throw unknownKey(key, USER_KEYS, place);
  for (const key of ['username', 'password'] as const) {
    if (typeof user[key] === 'string') continue;
    const message = `${place}.${key}: expected a string, got ${kindOf(user[key])}`;
    throw new InvalidInput('OPTION_INVALID', `${place}.${key}`, 'a string', undefined, message);
  }
}

function kindOf(value: unknown): string {
  return value === undefined || value === null ? String(value) : `a value of type ${typeof value}`;
}
