import { useState } from 'preact/hooks';
import { choice, forgetDrafts, go, hrefOf } from '../app/place.ts';
import { get, remove, request } from '../app/requests.ts';
import { copiedActions, definitionOf, withLive } from '../model/rules.ts';
import { Action, forAdministrators } from '../parts/confirm.tsx';
import { CopyAs } from '../parts/copy.tsx';
import { useChangesOfOthers, useDraft } from '../parts/editor/draft.ts';
import { Editor } from '../parts/editor/editor.tsx';
import { Faults } from '../parts/editor/faults.tsx';
import { Newer } from '../parts/editor/newer.tsx';
import { Head } from '../parts/facts.tsx';
import { Field } from '../parts/fields.tsx';
import { useLoaded } from '../parts/loading.ts';
import { Name } from '../parts/name.tsx';
import { notify } from '../parts/notices.tsx';
import { Problem } from '../parts/problem.tsx';
import { T } from '../texts.ts';
import { type ActionDraft, Actions } from './rule/actions.tsx';
import { useLiveRule } from './rule/live.ts';
import { Metrics } from './rule/metrics.tsx';
import { type RuleRow, RuleState } from './rule/row.tsx';
import { Samples } from './rule/samples.tsx';
import { TestRun } from './rule/test-run.tsx';
import { useLanguage, useValidation, useWords } from './rule/words.ts';

const R = T.rules;
const EXAMPLE = 'SELECT payload.value AS value, topic, clientid\nFROM "sensors/#"\nWHERE payload.value > 20';

/** A rule: its statement with a test, its actions, counters and samples. A new rule has no id yet. */
export function Page() {
  const id = choice('id');
  return <Rule key={id} id={id} />;
}

function Rule({ id }: { readonly id: string }) {
  const {
    value: loaded,
    error,
    reload,
    refresh
  } = useLoaded<RuleRow | undefined>(id, async (signal) =>
    id === '' ? undefined : get('/rules/{id}', { params: { id }, signal })
  );
  const live = useLiveRule(loaded === undefined ? '' : id);
  const value = loaded && withLive(loaded, live);
  useChangesOfOthers(definitionOf(live), refresh);
  const isGone = live?.state === 'gone';
  return (
    <>
      <p class="crumbs">
        <a href={hrefOf('rules')}>{T.views.rules}</a>
      </p>
      <Head
        title={
          id === '' ? (
            R.create
          ) : (
            <>
              <Name of={id} /> {value && !isGone && <RuleState rule={value} />}
            </>
          )
        }
      >
        {value && !isGone && <RuleActions rule={value} onDone={reload} />}
      </Head>
      {isGone && <p class="warning">{R.gone}</p>}
      {error !== undefined && <Problem error={error} onRetry={reload} />}
      {(id === '' || loaded) && <Draft rule={loaded} onSaved={reload} />}
      {value && <Metrics rule={value} />}
      {value && <Samples id={id} sampledAt={live?.sampledAt ?? 0} />}
    </>
  );
}

function RuleActions({ rule, onDone }: { readonly rule: RuleRow; readonly onDone: () => void }) {
  const { id, enabled } = rule;
  const path = `/rules/${encodeURIComponent(id)}`;
  return (
    <>
      <Action
        name={enabled ? 'disable' : 'enable'}
        label={enabled ? R.disable : R.enable}
        of={id}
        text={enabled ? R.disableText : R.enableText}
        done={enabled ? R.disabled : R.enabled}
        run={async () => {
          await request('PUT', '/rules/{id}', { params: { id }, body: { enabled: !enabled } });
          onDone();
        }}
      >
        <CopyAs
          request={{ method: 'PUT', path, body: { enabled: !enabled } }}
          ctl={['rules', enabled ? 'disable' : 'enable', '--', id]}
        />
      </Action>
      <Action
        label={R.remove}
        title={R.removeTitle}
        of={id}
        text={R.removeText}
        isDangerous
        done={R.removed}
        run={async () => {
          await remove('/rules/{id}', { params: { id } });
          forgetDrafts();
          go('rules', {}, true);
        }}
      >
        <CopyAs request={{ method: 'DELETE', path }} ctl={['rules', 'remove', '--', id]} />
      </Action>
    </>
  );
}

/** The parts of a rule that a person can change. */
interface Typed {
  readonly statement: string;
  readonly description: string;
  readonly actions: readonly ActionDraft[];
}

function typedOf(rule: RuleRow | undefined): Typed {
  return {
    statement: rule?.rawsql ?? EXAMPLE,
    description: rule?.description ?? '',
    actions: rule?.actions.map(draftOf) ?? []
  };
}

/** An action as it is given. Its fallbacks have the same form. */
function draftOf({ name, params, fallbacks }: ActionDraft): ActionDraft {
  return { name, params, fallbacks: (fallbacks as readonly unknown[] as readonly ActionDraft[]).map(asGiven) };
}

function asGiven(action: ActionDraft): ActionDraft & Readonly<Record<string, unknown>> {
  return { ...draftOf(action) };
}

/** The changes that a person has made, until they are saved. */
function Draft({ rule, onSaved }: { readonly rule: RuleRow | undefined; readonly onSaved: () => void }) {
  const [id, setId] = useState('');
  const [runs, setRuns] = useState(0);
  const draft = useDraft(rule, typedOf, (typed) => typed.statement);
  const { base, typed, version, newer, error, isChanged, change, failed: setError } = draft;
  const { statement, description, actions } = typed;
  const language = useLanguage();
  const words = useWords(language, statement);
  const { fault, hints, columns } = useValidation(statement);
  const body = { ...(base === undefined && id !== '' && { id }), rawsql: statement, description, actions };
  const save = (replaces = false) =>
    draft.save(async () => {
      if (base === undefined) {
        const { data } = await request('POST', '/rules', { body });
        draft.leave((data as RuleRow).id, typed);
        go('rule', { id: (data as RuleRow).id });
      } else {
        const params = { id: base.id };
        const present = (await get('/rules/{id}', { params })) as RuleRow;
        if (!replaces && !draft.isUpToDate(present)) return;
        draft.take((await request('PUT', '/rules/{id}', { params, body })).data as RuleRow, typed);
        onSaved();
      }
      notify(R.saved);
    });
  return (
    <div class="split rule">
      <section class="panel">
        <h2>{R.statement}</h2>
        {base === undefined && (
          <Field field={{ name: 'id', label: R.id, help: R.idHelp }} value={id} onChange={setId} />
        )}
        <Editor
          key={version}
          label={R.statement}
          text={statement}
          words={words}
          fault={fault}
          onChange={(text) => change({ statement: text })}
          onRun={() => setRuns((count) => count + 1)}
        />
        <Faults fault={fault} hints={hints} error={error} />
        <Field
          field={{ name: 'description', label: R.description }}
          value={description}
          onChange={(text) => change({ description: text })}
        />
        <Actions actions={actions} statement={statement} onChange={(list) => change({ actions: list })} />
        {newer && <Newer onLoad={() => draft.take(newer)} onReplace={() => void save(true)} />}
        <div class="form-buttons">
          <button type="button" class="primary" {...forAdministrators(isChanged)} onClick={() => void save()}>
            {base === undefined ? T.form.create : R.save}
          </button>
          {isChanged ? <Copies id={base?.id} body={body} /> : <span class="aside">{R.unchanged}</span>}
        </div>
      </section>
      <TestRun statement={statement} columns={columns} language={language} run={runs} onError={setError} />
    </div>
  );
}

/** The commands that save a rule. Nothing until the secrets of its actions are known. @param id undefined: a new one */
function Copies({
  id,
  body: given
}: {
  readonly id: string | undefined;
  readonly body: { readonly actions: readonly ActionDraft[] };
}) {
  const { value: types } = useLoaded('actions', (signal) => get('/actions', { signal }));
  if (types === undefined) return null;
  const body = { ...given, actions: copiedActions(given.actions, types) };
  const input = JSON.stringify(body);
  if (id === undefined)
    return <CopyAs request={{ method: 'POST', path: '/rules', body }} ctl={['rules', 'add', '-']} input={input} />;
  const path = `/rules/${encodeURIComponent(id)}`;
  return <CopyAs request={{ method: 'PUT', path, body }} ctl={['rules', 'change', '--', id, '-']} input={input} />;
}
