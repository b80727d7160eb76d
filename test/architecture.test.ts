import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { join, posix } from 'node:path';
import { describe, it } from 'node:test';
import ts from 'typescript';
import { sourceProgram } from './support/compiler.ts';
import { importsOf, packageSources, sources, syntaxOf, textOf, treeOf } from './support/sources.ts';

const root = join(import.meta.dirname, '..');

/** The folders of lib from the lowest to the highest. A file may import from its own row and from those above it in this list. */
const ROWS: readonly (readonly string[])[] = [
  ['base'],
  ['packets', 'topics', 'sql'],
  ['records', 'events'],
  ['store', 'routing', 'retained', 'outbox'],
  ['targets'],
  ['connection'],
  ['session', 'client'],
  ['access', 'monitor', 'tools', 'rules', 'streams'],
  ['broker'],
  ['testing'],
  ['index', 'adapter', 'deprecated', 'machines', 'decoder']
];

/** Folders that import less than their row allows. */
const NARROWER: Readonly<Record<string, readonly string[]>> = {
  packets: ['base', 'topics'],
  topics: ['base'],
  sql: ['base'],
  store: ['packets', 'base'],
  outbox: ['store', 'base'],
  targets: ['base', 'events', 'outbox'],
  client: ['packets', 'topics', 'events', 'base']
};

/** The rooms and single files inside of two folders of lib, from the lowest to the highest: the same rule as for `ROWS`. */
const ROOMS: Readonly<Record<string, readonly (readonly string[])[]>> = {
  'lib/broker': [
    ['actors', 'broker.machine', 'chart', 'check-broker', 'life', 'new-message', 'turn', 'version'],
    ['configuration'],
    ['services'],
    ['features'],
    ['sessions'],
    ['rights'],
    ['messages'],
    ['admission'],
    ['computing'],
    ['storage'],
    ['reasons'],
    ['engine'],
    ['broker-lifecycle', 'facets'],
    ['broker', 'broker-text', 'call-options'],
    ['backup', 'configuration-document']
  ],
  'lib/streams': [
    ['values'],
    [
      'chart',
      'format',
      'function',
      'host',
      'limits',
      'memory-topics',
      'own-server',
      'properties',
      'rule-states',
      'types',
      'api'
    ],
    ['print-statement', 'statement', 'stream-name', 'streams-options', 'window-text'],
    ['formats', 'functions'],
    ['expressions', 'registry'],
    ['operators'],
    ['plan'],
    ['graph'],
    ['template'],
    ['sources'],
    ['sinks'],
    ['checkpoints'],
    ['ddl'],
    ['rule'],
    ['service'],
    ['index']
  ]
};

/** Maximum number of TypeScript files in a folder of lib or adapters, without those in its folders. */
const MAX_FILES = 25;

/** Maximum number of lines and public members of a class, and of lines of a function. */
const LIMITS = { lines: 400, members: 25, functionLines: 80 };

/**
 * The messages of one session are one graph of objects with common invariants. When it was cut into 19 classes to meet the limits, each change
 * touched five files and each class declared an interface of the others. So these four, and `Session` itself, may import each other and be
 * larger; members that only these classes use count as public.
 */
const MESSAGES = {
  folder: 'lib/session/messages/',
  session: 'lib/session/session.ts',
  classes: ['Inflight', 'Outlet', 'Queue', 'SessionLog'],
  limits: { lines: 700, members: 49 }
} as const;

/** Classes and functions that exceed `LIMITS`, with their maximum size. This list may only shrink. */
const LARGE: Readonly<Record<string, number>> = {
  'lib/broker/broker.ts Broker, public members': 45, // a member for each facet, and two for traces
  'lib/streams/rule/rules.ts StreamRules, public members': 26 // a member for each call of StreamRulesApi
};

/** Maximum number of interfaces `...Owner`, `...Ports`, `...Host` and `...Parts` in a folder. These numbers may only shrink. */
const MAX_PORTS: Readonly<Record<string, number>> = { 'lib/session/': 2, 'lib/': 54 };

/** Files that may re-export. */
const PUBLIC = [
  'lib/index.ts',
  'lib/adapter.ts',
  'lib/deprecated.ts',
  'lib/client/index.ts',
  'lib/machines.ts',
  'lib/rules/index.ts',
  'lib/streams/index.ts',
  'lib/testing/index.ts'
];

/** The entry points of adapters; sources of authentication, sources and sinks of streams, and clients each have one. */
const ENTRY_POINT = /^adapters\/(auth\/|management\/|rest\/|streams\/|streams-api\/)?[^/]+\/index\.ts$/;

/** Modules that lib does not use: it opens no port, reads no file and communicates with no other process. */
const OUTSIDE_WORLD =
  /^(net|tls|dgram|dns|https?|http2|fs|child_process|cluster|worker_threads|readline|repl|inspector)(\/|$)/;

/** The entry points of lib that adapters use. */
const FOR_ADAPTERS = ['lib/index.ts', 'lib/adapter.ts', 'lib/decoder.ts', 'lib/machines.ts'];

/** Uses of these modules that only compute: the class BlockList and the function isIP. */
const COMPUTING: Readonly<Record<string, string>> = { 'lib/access/network.ts': 'node:net' };

/** Packages lib may import; adapters and examples have their own. */
const LIB_PACKAGES = ['croner', 'eventemitter3', 'lru-cache', 'mqtt-packet', 're2js', 'typebox/schema', 'xstate'];

const program = sourceProgram();
const imports = sources.flatMap(importsOf);

/** `lib/packets/decode.ts` is in folder `packets`; `lib/index.ts` counts as a separate folder. */
function folderOf(path: string): string {
  return path.split('/')[1].replace(/\.ts$/, '');
}

function rowOf(path: string): number {
  return ROWS.findIndex((folders) => folders.includes(folderOf(path)));
}

function list(wrong: readonly { file: string; name: string }[]): string[] {
  return wrong.map(({ file, name }) => `${file} imports ${name}`);
}

/** Groups of files that reach each other by imports (Tarjan's strongly connected components), of more than two files. */
function circles(): string[][] {
  const isOfMessages = (file: string) => file.startsWith(MESSAGES.folder) || file === MESSAGES.session;
  const targets = new Map(sources.map((file) => [file, [] as string[]]));
  for (const { file, target } of imports)
    if (target !== undefined && !(isOfMessages(file) && isOfMessages(target))) targets.get(file)?.push(target);
  const order = new Map<string, number>();
  const low = new Map<string, number>();
  const stack: string[] = [];
  const found: string[][] = [];
  const visit = (file: string): void => {
    order.set(file, order.size);
    low.set(file, order.get(file) as number);
    stack.push(file);
    for (const target of targets.get(file) ?? []) {
      if (!order.has(target)) visit(target);
      if (stack.includes(target)) low.set(file, Math.min(low.get(file) as number, low.get(target) as number));
    }
    if (low.get(file) !== order.get(file)) return;
    const group = stack.splice(stack.indexOf(file));
    if (group.length > 2) found.push(group.sort());
  };
  for (const file of sources) if (!order.has(file)) visit(file);
  return found.sort();
}

/** Sizes of the classes and functions of a file: lines and public members by class, lines by function. */
function sizesOf(file: string): [name: string, size: number, limit: number][] {
  const source = syntaxOf(file);
  const lineAt = (position: number) => source.getLineAndCharacterOfPosition(position).line;
  const linesOf = (node: ts.Node) => lineAt(node.getEnd()) - lineAt(node.getStart(source)) + 1;
  const found: [string, number, number][] = [];
  const { lines, members } = file.startsWith(MESSAGES.folder) ? MESSAGES.limits : LIMITS;
  const visit = (node: ts.Node, within: string): void => {
    const { name } = node as { name?: ts.Node };
    const path = name === undefined ? within : `${within} ${name.getText(source)}`;
    if (ts.isClassDeclaration(node)) {
      found.push([`${path}, lines`, linesOf(node), lines]);
      found.push([`${path}, public members`, publicMembers(node).size, members]);
    } else if (ts.isFunctionLike(node)) found.push([`${path}, lines`, linesOf(node), LIMITS.functionLines]);
    ts.forEachChild(node, (child) => visit(child, path));
  };
  visit(source, file);
  return found;
}

/** A getter and setter count once; constructors, static, internal and deprecated members and those of symbols do not count. */
function publicMembers({ members }: ts.ClassDeclaration): Set<string> {
  const isPublic = (member: ts.ClassElement) =>
    member.name !== undefined &&
    ts.isIdentifier(member.name) &&
    ts.getJSDocDeprecatedTag(member) === undefined &&
    !(
      ts.getCombinedModifierFlags(member) &
      (ts.ModifierFlags.Private | ts.ModifierFlags.Protected | ts.ModifierFlags.Static)
    );
  return new Set(members.filter(isPublic).map((member) => (member.name as ts.Identifier).text));
}

describe('sizes', () => {
  it('keeps classes and functions within the limits, except those that are listed', () => {
    const sizes = packageSources.flatMap(sizesOf).filter(([, size, limit]) => size > limit);
    const found = Object.fromEntries(sizes);
    const grown = sizes.filter(([name, size]) => size > (LARGE[name] ?? 0)).map(([name, size]) => `${name}: ${size}`);
    assert.deepEqual(grown, [], 'make them smaller');
    const isOver = (name: string) => found[name] === undefined;
    assert.deepEqual(Object.keys(LARGE).filter(isOver), [], 'remove them from the list');
  });
});

/** The declarations of interfaces in a folder that name what a class needs of another one. */
function portsIn(folder: string): string[] {
  return packageSources
    .filter((file) => file.startsWith(folder))
    .flatMap((file) => {
      const names = syntaxOf(file)
        .statements.filter(ts.isInterfaceDeclaration)
        .map(({ name }) => name.text);
      return names.filter((name) => /(Owner|Ports|Host|Parts)$/.test(name)).map((name) => `${file} ${name}`);
    });
}

describe('the parts of a class', () => {
  it('keeps the messages of a session in four classes beside Session', () => {
    const classes = packageSources
      .filter((file) => file.startsWith(MESSAGES.folder))
      .flatMap((file) =>
        syntaxOf(file)
          .statements.filter(ts.isClassDeclaration)
          .map(({ name }) => name?.text)
      );
    assert.deepEqual(classes.sort(), MESSAGES.classes);
  });

  it('declares few interfaces of what a class needs of another one: a part that needs its owner belongs into it', () => {
    for (const [folder, most] of Object.entries(MAX_PORTS)) {
      const found = portsIn(folder);
      assert.ok(found.length <= most, `${found.length} in ${folder}:\n${found.join('\n')}`);
    }
  });
});

/**
 * Assignments to a field of an object whose class is declared in another file. Objects of interfaces are not examined: they are plain
 * values that one function fills, such as packets.
 */
function foreignAssignments(): string[] {
  const checker = program.getTypeChecker();
  const found = new Set<string>();
  for (const file of packageSources) {
    const source = syntaxOf(file);
    const visit = (node: ts.Node): void => {
      const target = assignedBy(node);
      if (target !== undefined && ts.isPropertyAccessExpression(target)) {
        const field = checker.getSymbolAtLocation(target.name)?.valueDeclaration;
        const isOfClass = field !== undefined && ts.isPropertyDeclaration(field);
        if (isOfClass && field.getSourceFile() !== source && target.expression.kind !== ts.SyntaxKind.ThisKeyword)
          found.add(`${file} ${target.getText()}`);
      }
      ts.forEachChild(node, visit);
    };
    visit(source);
  }
  return [...found].sort();
}

/** The target of an assignment, also of `+=`, `++` and the like. */
function assignedBy(node: ts.Node): ts.Expression | undefined {
  if (ts.isBinaryExpression(node)) {
    const { kind } = node.operatorToken;
    return kind >= ts.SyntaxKind.FirstAssignment && kind <= ts.SyntaxKind.LastAssignment ? node.left : undefined;
  }
  if (!ts.isPrefixUnaryExpression(node) && !ts.isPostfixUnaryExpression(node)) return undefined;
  const { operator } = node;
  const isStep = operator === ts.SyntaxKind.PlusPlusToken || operator === ts.SyntaxKind.MinusMinusToken;
  return isStep ? node.operand : undefined;
}

describe('fields', () => {
  it('assigns the fields of an object of a class only in the file of the class', () => {
    assert.deepEqual(foreignAssignments(), [], 'let a method of the class assign them');
  });
});

/** The interfaces that describe a value by its purpose, its type and its default. */
function fieldTypes(): string[] {
  const found: string[] = [];
  for (const file of packageSources) {
    const visit = (node: ts.Node): void => {
      if (ts.isInterfaceDeclaration(node)) {
        const names = new Set(node.members.map(({ name }) => name?.getText()));
        const isReadBy = ['type', 'kind'].some((name) => names.has(name));
        if (['about', 'description'].some((name) => names.has(name)) && isReadBy && names.has('default'))
          found.push(`${file}: ${node.name.text}`);
      }
      ts.forEachChild(node, visit);
    };
    visit(syntaxOf(file));
  }
  return found;
}

describe('fields of tables', () => {
  it('describes options, flags, properties and parameters by the one interface Field', () => {
    assert.deepEqual(fieldTypes(), [
      'lib/base/fields.ts: Field',
      'lib/broker/configuration/configuration.ts: Setting' // an option with its present value
    ]);
  });
});

/** No file imports these types, but the declarations that the compiler writes for other files name them. */
const IN_DECLARATIONS = [
  'lib/rules/events/client-columns.ts: OfClient',
  'lib/session/messages/session-record.ts: SubscriptionEntry'
];

/** The files of the entry points of the package, whose exports are for apps. */
function entryPoints(): string[] {
  const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    exports: Record<string, { 'embermq-source'?: string }>;
  };
  return Object.values(exports).flatMap(({ 'embermq-source': path }) =>
    path === undefined ? [] : [posix.normalize(path)]
  );
}

/** The names that files take from each other, by file; `*`: all that it exports. */
function takenNames(): Map<string, Set<string>> {
  const taken = new Map<string, Set<string>>();
  for (const { target, names } of imports) {
    if (target === undefined) continue;
    if (!taken.has(target)) taken.set(target, new Set());
    for (const name of names) taken.get(target)?.add(name);
  }
  return taken;
}

/** The names that a file exports by its own declarations. */
function exportedNames(file: string): string[] {
  return syntaxOf(file).statements.flatMap((statement) => {
    const isExported =
      ts.canHaveModifiers(statement) &&
      ts.getModifiers(statement)?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword) === true;
    if (!isExported) return [];
    if (ts.isVariableStatement(statement))
      return statement.declarationList.declarations
        .flatMap(({ name }) =>
          ts.isObjectBindingPattern(name) ? name.elements.map((element) => element.name) : [name]
        )
        .map((name) => (name as ts.Identifier).text);
    return [(statement as { name?: ts.Identifier }).name?.text ?? ''];
  });
}

describe('exports', () => {
  it('requires that exports which are not for apps are used by another file', () => {
    const taken = takenNames();
    const entries = entryPoints();
    const unused = sources
      .filter((file) => ['lib', 'adapters', 'test'].includes(treeOf(file)) && !entries.includes(file))
      .filter((file) => taken.get(file)?.has('*') !== true)
      .flatMap((file) =>
        exportedNames(file)
          .filter((name) => taken.get(file)?.has(name) !== true)
          .map((name) => `${file}: ${name}`)
      );
    assert.deepEqual(unused.sort(), IN_DECLARATIONS, 'remove them, or the word "export"');
  });

  it('declares no type twice below the parser of SQL: in the language of events and in that of streams', () => {
    const typesOf = (folder: RegExp) =>
      sources
        .filter((file) => folder.test(file))
        .flatMap((file) =>
          [...textOf(file).matchAll(/^export (?:type|interface|class) (\w+)/gm)].map(([, name]) => name)
        );
    const ofStreams = new Set(typesOf(/^lib\/streams\/(expressions|functions|values)\/|^lib\/streams\/function\.ts$/));
    const twice = typesOf(/^lib\/sql\//).filter((name) => ofStreams.has(name));
    assert.deepEqual(twice, [], 'use the type of lib/sql, or name the idea that differs');
  });
});

/** Parts of the kit of REST interfaces, which adapters declare once. Aliases of its types are allowed. */
const OF_KIT = ['Operation', 'Input', 'Example', 'Guard', 'RestService', 'Audit', 'operation', 'openApi'];

describe('the kit of REST interfaces', () => {
  it('declares operations, their input, the guard, the answer to a call and the document once for all interfaces', () => {
    const inRest = packageSources.filter((file) => /^adapters\/(rest|management|streams-api)\/(?!client)/.test(file));
    const declared = inRest.flatMap((file) =>
      syntaxOf(file)
        .statements.filter(
          (node) => ts.isInterfaceDeclaration(node) || ts.isClassDeclaration(node) || ts.isFunctionDeclaration(node)
        )
        .map(({ name }) => ({ file, name: name?.text ?? '' }))
    );
    const found = declared.filter(({ name }) => OF_KIT.includes(name));
    assert.deepEqual(found.map(({ name }) => name).sort(), [...OF_KIT].sort());
    assert.deepEqual(
      found.filter(({ file }) => !file.startsWith('adapters/rest/')),
      []
    );
    assert.deepEqual(
      inRest.filter((file) => textOf(file).includes('as unknown as Operation')),
      [],
      'rows keep their types'
    );
  });

  it('makes the schemas of objects from fields, in one file', () => {
    const inAdapters = packageSources.filter((file) => file.startsWith('adapters/'));
    const made = inAdapters.filter((file) =>
      /\bType\.(Object|Array|Record|String|Integer|Number|Boolean|Enum|Union|Unknown)\(/.test(textOf(file))
    );
    assert.deepEqual(made, [
      'adapters/management/operations/applications.ts', // a string with a pattern
      'adapters/rest/kit/schemas.ts'
    ]);
  });
});

describe('import directions', () => {
  it('reads the imports of all sources', () => {
    assert.ok(
      imports.some(({ file, target }) => file === 'test/topics/topic.test.ts' && target === 'lib/topics/topic.ts')
    );
  });

  it('allows no imports in lib from adapters, examples, bench or test', () => {
    assert.deepEqual(
      list(
        imports.filter(({ file, target }) => treeOf(file) === 'lib' && target !== undefined && treeOf(target) !== 'lib')
      ),
      []
    );
  });

  it('requires a place in the order for the folder of every file of lib', () => {
    assert.deepEqual(
      sources.filter((file) => treeOf(file) === 'lib' && rowOf(file) < 0),
      []
    );
  });

  it('allows imports in a folder of lib only from its own row and lower ones', () => {
    const inLib = imports.filter(({ file, target }) => treeOf(file) === 'lib' && target !== undefined);
    assert.deepEqual(list(inLib.filter(({ file, target }) => rowOf(target as string) > rowOf(file))), []);
    // session and client share a row and must not import each other
    assert.deepEqual(
      list(inLib.filter(({ file, target }) => folderOf(file) === 'session' && folderOf(target as string) === 'client')),
      []
    );
  });

  it('allows imports in a room of the broker or of the stream rules only from its own row and lower ones', () => {
    const placeIn = (folder: string, path: string) => {
      const name = path
        .slice(folder.length + 1)
        .split('/')[0]
        .replace(/\.ts$/, '');
      return (ROOMS[folder] as readonly (readonly string[])[]).findIndex((row) => row.includes(name));
    };
    for (const folder of Object.keys(ROOMS)) {
      const isInside = (path: string | undefined): path is string => path?.startsWith(`${folder}/`) === true;
      assert.deepEqual(
        sources.filter((file) => isInside(file) && placeIn(folder, file) < 0),
        [],
        'give each file a place in ROOMS'
      );
      const inside = imports.filter(({ file, target }) => isInside(file) && isInside(target));
      assert.deepEqual(
        list(inside.filter(({ file, target }) => placeIn(folder, target as string) > placeIn(folder, file))),
        []
      );
    }
  });

  it('allows at most 25 files in a folder of lib or adapters', () => {
    const counts = new Map<string, number>();
    for (const file of packageSources) counts.set(posix.dirname(file), (counts.get(posix.dirname(file)) ?? 0) + 1);
    const full = [...counts].filter(([, count]) => count > MAX_FILES);
    assert.deepEqual(full, [], 'divide it into rooms');
  });

  it('allows circular imports only in pairs of files', () => {
    assert.deepEqual(circles(), []);
  });

  it('limits the imports of packets, topics, stores and the in-process client to what they need', () => {
    const wrong = imports.filter(({ file, target }) => {
      if (treeOf(file) !== 'lib' || target === undefined || folderOf(file) === folderOf(target)) return false;
      return NARROWER[folderOf(file)]?.includes(folderOf(target)) === false;
    });
    assert.deepEqual(list(wrong), []);
  });

  it('allows no port and no file in lib', () => {
    const wrong = imports.filter(({ file, name }) => {
      const bare = name.replace(/^node:/, '');
      return (
        treeOf(file) === 'lib' && builtinModules.includes(bare) && OUTSIDE_WORLD.test(bare) && COMPUTING[file] !== name
      );
    });
    assert.deepEqual(list(wrong), []);
  });

  it('allows only the listed packages in lib', () => {
    const wrong = imports.filter(({ file, name, target }) => {
      return (
        treeOf(file) === 'lib' && target === undefined && !name.startsWith('node:') && !LIB_PACKAGES.includes(name)
      );
    });
    assert.deepEqual(list(wrong), []);
  });

  it('adapters reach lib through its entry points and each other through their index.ts, and the test kit is made of that of lib', () => {
    const wrong = imports.filter(({ file, target }) => {
      if (treeOf(file) !== 'adapters' || target === undefined || FOR_ADAPTERS.includes(target)) return false;
      if (folderOf(file) === 'testing' && target === 'lib/testing/index.ts') return false;
      const isOwn = treeOf(target) === 'adapters' && folderOf(target) === folderOf(file);
      return !isOwn && !ENTRY_POINT.test(target);
    });
    assert.deepEqual(list(wrong), []);
  });

  it('requires that examples import the package by name, and nothing from outside their folder by path', () => {
    const wrong = imports.filter(
      ({ file, target }) => treeOf(file) === 'examples' && target !== undefined && treeOf(target) !== 'examples'
    );
    assert.deepEqual(list(wrong), []);
  });

  it('allows only the entry points to re-export', () => {
    const wrong = sources.filter((file) => /^export\s[^;'"(=]*\sfrom\s'/m.test(textOf(file)));
    assert.deepEqual(
      wrong.filter((file) => !PUBLIC.includes(file) && !ENTRY_POINT.test(file)),
      []
    );
  });

  it('demands a comment at the top of files of lib and adapters above 200 lines', () => {
    const long = packageSources.filter((file) => textOf(file).trimEnd().split('\n').length > 200);
    assert.ok(long.length > 0);
    assert.deepEqual(
      // a comment that is followed at once by an import is about that import
      long.filter((file) => !/^(#!.*\n)?(\/\/.*\n)+(?!import|\/\/)|^\/\*/.test(textOf(file))),
      []
    );
  });

  it('states once after which answers of a server a request is sent again', () => {
    const hasTooEarly = (node: ts.Node): boolean =>
      (ts.isNumericLiteral(node) && node.text === '425') || (ts.forEachChild(node, hasTooEarly) ?? false);
    assert.deepEqual(
      packageSources.filter((file) => hasTooEarly(syntaxOf(file))),
      ['adapters/outgoing/answer-status.ts']
    );
  });

  it('sends requests to other servers in one place, and those of ctl in another', () => {
    const senders = imports.filter(
      ({ file, name, names }) =>
        packageSources.includes(file) && /^node:https?$/.test(name) && names.some((one) => /^(request|get)$/.test(one))
    );
    assert.deepEqual([...new Set(senders.map(({ file }) => file))].sort(), [
      'adapters/cli/ctl/fetch.ts',
      'adapters/outgoing/http-client.ts'
    ]);
  });

  it('allows no default exports', () => {
    assert.deepEqual(
      sources.filter((file) => /^export default\b/m.test(textOf(file))),
      []
    );
  });
});
