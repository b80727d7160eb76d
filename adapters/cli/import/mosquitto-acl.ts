// mosquitto asks for a client in this order: deny lines of its user (or of clients without a user name), then the
// other lines of it, then patterns, again deny lines first; what nothing allows is denied. Rules here are a list of
// which the first decides, for conditions that can say "has a user name" but not "has none". So the rules of named
// clients come first and end with a denial, and what follows applies to clients without a name.
//
// If both clients without a name and a password file are admitted, a name that is not in the file counts as none here,
// while mosquitto refuses such a client. Then each name of the file has own rules, so no one gets rights by a name.

import { parseAclFile } from '../../../lib/adapter.ts';
import type { AccessRule } from '../../../lib/index.ts';
import type { Draft, SourceLine } from './draft.ts';

/** A line of an ACL file. */
interface AclLine {
  readonly isPattern: boolean;
  /** Undefined: clients without a user name. */
  readonly user: string | undefined;
  readonly access: keyof typeof ACTIONS;
  readonly topic: string;
}

const ACTIONS = { read: 'subscribe', write: 'publish', readwrite: 'pubsub', deny: 'pubsub' } as const;
const NAMED = /(^|\/)%[cu](\/|$)/;
/** A name for which mosquitto applies no pattern. */
const UNFIT = /[+#/]/;

/** The clients that the rules are for. */
interface Clients {
  /** True if clients without a user name can connect. */
  readonly admitsAnonymous: boolean;
  /** The names of the password file, if its users are not the only clients; undefined: every client with a name has proved it. */
  readonly names: readonly string[] | undefined;
}

/** Make access rules from the lines of an ACL file of mosquitto. */
export function rulesOfMosquitto(lines: readonly SourceLine[], clients: Clients, draft: Draft): AccessRule[] {
  const read: AclLine[] = [];
  let user: string | undefined;
  for (const line of lines) {
    if (line.name === 'user') {
      user = line.value;
      if (line.value === '') draft.refuse(line, 'the name of the user is missing');
      continue;
    }
    const one = readLine(line, user);
    if (typeof one === 'string') draft.refuse(line, one);
    else if (user === undefined && !one.isPattern && !clients.admitsAnonymous)
      draft.refuse(line, 'is for clients without a user name, of which none can connect');
    else read.push(one);
  }
  return ruleList(read, clients);
}

function readLine({ name, value }: SourceLine, user: string | undefined): AclLine | string {
  if (name !== 'topic' && name !== 'pattern') return 'an ACL file has lines that begin with user, topic or pattern';
  const [, word, rest] = /^(\S+)\s+(.*)$/.exec(value) ?? [];
  if (word !== undefined && !Object.hasOwn(ACTIONS, word)) return `"${word}" is not read, write, readwrite or deny`;
  const topic = rest ?? value;
  const isPattern = name === 'pattern';
  if (/%[cu]/.test(topic.replace(new RegExp(NAMED, 'g'), '//').replace(new RegExp(NAMED, 'g'), '//')))
    return '%c and %u are replaced only if they are a whole level';
  if (!isPattern && /%[cu]/.test(topic)) return 'topics of rules that contain %c or %u are patterns here';
  const access = (word ?? 'readwrite') as AclLine['access'];
  const line = { isPattern, user: isPattern ? undefined : user, access, topic };
  try {
    parseAclFile(JSON.stringify([ruleOf(line, {})]));
    return line;
  } catch (error) {
    return (error as Error).message.replace(/^line \d+: (rule 1: )?/, '');
  }
}

function ruleOf({ access, topic }: AclLine, who: Partial<AccessRule>): AccessRule {
  return { access: access === 'deny' ? 'deny' : 'allow', ...who, action: ACTIONS[access], topic };
}

function ruleList(lines: readonly AclLine[], { admitsAnonymous, names }: Clients): AccessRule[] {
  const patterns = inOrder(lines.filter(({ isPattern }) => isPattern));
  const topics = (user: string | undefined) => inOrder(lines.filter((line) => !line.isPattern && line.user === user));
  const rules: AccessRule[] = [];
  // topics that begin with $ are covered by no wildcard
  const all = ['#', '$SYS/#', ...lines.map(({ topic }) => topic).filter((topic) => /^\$(?!SYS)/.test(topic))];
  const endOf = (who: Partial<AccessRule>) =>
    all.map((topic): AccessRule => ({ access: 'deny', ...who, action: 'pubsub', topic }));
  if (names === undefined) {
    const users = new Set(lines.flatMap(({ user }) => (user === undefined ? [] : [user])));
    for (const username of users) rules.push(...topics(username).map((line) => ruleOf(line, { username })));
    rules.push(...patterns.map((line) => ruleOf(line, { hasUsername: true })));
    if (admitsAnonymous) rules.push(...endOf({ hasUsername: true }));
  } else
    for (const username of names) {
      const own = UNFIT.test(username) ? [] : patterns;
      rules.push(...topics(username).map((line) => ruleOf(line, { username })));
      rules.push(...own.map((line) => ruleOf(line, { username })), ...endOf({ username }));
    }
  if (!admitsAnonymous) return rules;
  rules.push(...topics(undefined).map((line) => ruleOf(line, {})));
  rules.push(...patterns.filter(({ topic }) => !topic.split('/').includes('%u')).map((line) => ruleOf(line, {})));
  return rules;
}

/** Lines that deny something, and then the others. */
function inOrder(lines: readonly AclLine[]): AclLine[] {
  const isDenial = ({ access }: AclLine) => access === 'deny';
  return [...lines.filter(isDenial), ...lines.filter((line) => !isDenial(line))];
}
