import { useState } from 'preact/hooks';
import { choice, go } from '../../app/place.ts';
import { RequestError } from '../../app/requests.ts';
import { streams } from '../../app/streams.ts';
import { withoutSecrets } from '../../model/copy.ts';
import { secretsIn } from '../../model/rules.ts';
import { specsOf, type TypeDetails } from '../../model/streams.ts';
import { forAdministrators } from '../../parts/confirm.tsx';
import { CopyAs } from '../../parts/copy.tsx';
import { useDraft } from '../../parts/editor/draft.ts';
import { Editor } from '../../parts/editor/editor.tsx';
import { Faults } from '../../parts/editor/faults.tsx';
import { Newer } from '../../parts/editor/newer.tsx';
import { Field } from '../../parts/fields.tsx';
import { useLoaded } from '../../parts/loading.ts';
import { notify } from '../../parts/notices.tsx';
import { objectIn } from '../../parts/properties.tsx';
import { T } from '../../texts.ts';
import { type Sink, Sinks } from './sinks.tsx';
import { TestRun } from './test-run.tsx';
import { useDefinitions, useValidation, useWords } from './words.ts';

const S = T.streamRules;

/** A stream rule as the interface has it. */
export interface StreamRule {
  readonly id: string;
  readonly sql: string;
  readonly actions: readonly Sink[];
  readonly options?: object;
  readonly name?: string;
  readonly tags?: readonly string[];
  readonly [member: string]: unknown;
}

/** The fields of a draft, as a person types them. */
interface Typed {
  readonly sql: string;
  readonly actions: readonly Sink[];
  readonly name: string;
  readonly tags: string;
  readonly options: string;
}

function typedOf(rule: StreamRule | undefined): Typed {
  return {
    sql: rule?.sql ?? exampleOver(choice('over')),
    actions: rule?.actions ?? [{ log: {} }],
    name: rule?.name ?? '',
    tags: (rule?.tags ?? []).join(', '),
    options: rule?.options === undefined ? '' : JSON.stringify(rule.options, null, 2)
  };
}

/** A statement to begin with. @param stream empty: any */
function exampleOver(stream: string): string {
  if (stream === '') return 'SELECT avg(t) AS t\nFROM demo\nGROUP BY TUMBLINGWINDOW(ss, 10)';
  return `SELECT *\nFROM ${/^[\p{L}_][\p{L}\d_]*$/u.test(stream) ? stream : `\`${stream}\``}`;
}

/** The body of a request that saves a draft. @throws InputError */
function bodyOf(rule: StreamRule | undefined, id: string, { sql, actions, name, tags, options }: Typed): object {
  return {
    ...rule,
    id: rule?.id ?? id,
    sql,
    actions,
    name,
    tags: tags
      .split(',')
      .map((tag) => tag.trim())
      .filter((tag) => tag !== ''),
    options: objectIn(S.options, options)
  };
}

/** The changes that a person has made to a rule, until they are saved. */
export function Draft({ rule, onSaved }: { readonly rule: StreamRule | undefined; readonly onSaved: () => void }) {
  const [id, setId] = useState('');
  const [runs, setRuns] = useState(0);
  const draft = useDraft(rule, typedOf, (typed) => typed.sql);
  const { base, typed, version, newer, error, isChanged, change: set } = draft;
  const definitions = useDefinitions(typed.sql);
  const words = useWords(definitions);
  const { fault, hints } = useValidation(typed.sql);
  const save = (replaces = false) =>
    draft.save(async () => {
      const body = bodyOf(base, id, typed);
      if (base === undefined) {
        notify(`${await streams('POST', '/rules', { body })}`);
        draft.leave(id, typed);
        go('stream', { id });
        return;
      }
      const path = `/rules/${encodeURIComponent(base.id)}`;
      if (!replaces && !draft.isUpToDate((await streams('GET', path)) as StreamRule)) return;
      notify(`${await streams('PUT', path, { body })}`);
      draft.take((await streams('GET', path)) as StreamRule, typed);
      onSaved();
    });
  return (
    <div class="split rule">
      <section class="panel">
        <h2>{T.rules.statement}</h2>
        {base === undefined && (
          <Field field={{ name: 'id', label: T.rules.id, isRequired: true }} value={id} onChange={setId} />
        )}
        <Editor
          key={version}
          label={T.rules.statement}
          text={typed.sql}
          words={words}
          fault={fault}
          onChange={(sql) => set({ sql })}
          onRun={() => setRuns((count) => count + 1)}
        />
        <Faults fault={fault} hints={hints} error={error} />
        <Sinks sinks={typed.actions} onChange={(actions) => set({ actions })} />
        <More typed={typed} onChange={set} />
        {newer && <Newer onLoad={() => draft.take(newer)} onReplace={() => void save(true)} />}
        <div class="form-buttons">
          <button
            type="button"
            class="primary"
            {...forAdministrators(isChanged && (base !== undefined || id !== ''))}
            onClick={() => void save()}
          >
            {base === undefined ? T.form.create : T.rules.save}
          </button>
          {!isChanged && <span class="aside">{T.rules.unchanged}</span>}
          {isChanged && (base?.id ?? id) !== '' && <Copies rule={base} id={base?.id ?? id} typed={typed} />}
        </div>
      </section>
      <TestRun
        statement={typed.sql}
        options={() => objectIn(S.options, typed.options)}
        definitions={definitions}
        run={runs}
      />
    </div>
  );
}

/** The sinks of a command that is copied, without the secrets of their types; undefined until these are known. */
function useCopiedSinks(sinks: readonly Sink[]): readonly Sink[] | undefined {
  const types = [...new Set(sinks.flatMap(Object.keys))].sort();
  const { value } = useLoaded(`secrets of ${types}`, async (signal) => {
    const all = types.map(async (type): Promise<readonly [string, ReadonlySet<string>]> => {
      const path = `/metadata/sinks/${encodeURIComponent(type)}`;
      const details = (await streams('GET', path, { signal }).catch(unknownType)) as TypeDetails | undefined;
      return [type, secretsIn(specsOf(details?.properties ?? []))];
    });
    return new Map(await Promise.all(all));
  });
  const known = value !== undefined && types.every((type) => value.has(type)) ? value : undefined;
  return (
    known &&
    sinks.map((sink) =>
      Object.fromEntries(
        Object.entries(sink).map(([type, properties]) => [type, withoutSecrets(properties, known.get(type))])
      )
    )
  );
}

/** A type that the broker does not know declares no secrets. */
function unknownType(error: unknown): undefined {
  if (!(error instanceof RequestError && error.status < 500 && error.status >= 400 && error.status !== 401))
    throw error;
}

/** The commands that save a draft. Nothing while its options are not valid, and until the secrets of its sinks are known. */
function Copies({
  rule,
  id,
  typed
}: {
  readonly rule: StreamRule | undefined;
  readonly id: string;
  readonly typed: Typed;
}) {
  const actions = useCopiedSinks(typed.actions);
  if (actions === undefined) return null;
  let body: object;
  try {
    body = bodyOf(rule, id, { ...typed, actions });
  } catch {
    return null;
  }
  const shared = { of: 'streams', input: JSON.stringify(body) } as const;
  return rule === undefined ? (
    <CopyAs {...shared} request={{ method: 'POST', path: '/rules', body }} ctl={['stream', 'add', '--', id, '-']} />
  ) : (
    <CopyAs
      {...shared}
      request={{ method: 'PUT', path: `/rules/${encodeURIComponent(id)}`, body }}
      ctl={['stream', 'change', '--', id, '-']}
    />
  );
}

function More({
  typed: { name, tags, options },
  onChange
}: {
  readonly typed: Typed;
  readonly onChange: (changes: Partial<Typed>) => void;
}) {
  return (
    <details>
      <summary>{S.more}</summary>
      <div class="form">
        <Field
          field={{ name: 'name', label: S.name, help: S.nameHelp }}
          value={name}
          onChange={(name) => onChange({ name })}
        />
        <Field
          field={{ name: 'tags', label: S.tags, help: S.tagsHelp }}
          value={tags}
          onChange={(tags) => onChange({ tags })}
        />
        <Field
          field={{ name: 'options', label: S.options, help: S.optionsHelp, type: 'lines' }}
          value={options}
          onChange={(options) => onChange({ options })}
        />
      </div>
    </details>
  );
}
