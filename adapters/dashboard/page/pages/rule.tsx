import { useState } from 'preact/hooks';
import { choice, go, hrefOf } from '../app/place.ts';
import { get, remove, request } from '../app/requests.ts';
import { withoutSecrets } from '../model/copy.ts';
import { withLive } from '../model/rules.ts';
import { Action, forAdministrators } from '../parts/confirm.tsx';
import { CopyAs } from '../parts/copy.tsx';
import { Editor } from '../parts/editor/editor.tsx';
import { Faults } from '../parts/editor/faults.tsx';
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
    reload
  } = useLoaded<RuleRow | undefined>(id, async (signal) =>
    id === '' ? undefined : get('/rules/{id}', { params: { id }, signal })
  );
  const live = useLiveRule(loaded === undefined ? '' : id);
  const value = loaded && withLive(loaded, live);
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
              <Name of={id} /> {value && <RuleState rule={value} />}
            </>
          )
        }
      >
        {value && <RuleActions rule={value} onDone={reload} />}
      </Head>
      {live?.state === 'gone' && <p class="warning">{R.gone}</p>}
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
        label={enabled ? R.disable : R.enable}
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
        text={R.removeText}
        isDangerous
        done={R.removed}
        run={async () => {
          await remove('/rules/{id}', { params: { id } });
          go('rules');
        }}
      >
        <CopyAs request={{ method: 'DELETE', path }} ctl={['rules', 'remove', '--', id]} />
      </Action>
    </>
  );
}

/** The changes that a person has made, until they are saved. */
function Draft({ rule, onSaved }: { readonly rule: RuleRow | undefined; readonly onSaved: () => void }) {
  const [id, setId] = useState('');
  const [statement, setStatement] = useState(rule?.rawsql ?? EXAMPLE);
  const [description, setDescription] = useState(rule?.description ?? '');
  const [actions, setActions] = useState<readonly ActionDraft[]>(() => rule?.actions.map(draftOf) ?? []);
  const [error, setError] = useState<unknown>();
  const [runs, setRuns] = useState(0);
  const language = useLanguage();
  const words = useWords(language, statement);
  const { fault, hints, columns } = useValidation(statement);
  const change = (text: string) => {
    setStatement(text);
    setError(undefined);
  };
  const body = {
    ...(rule === undefined && id !== '' && { id }),
    rawsql: statement,
    description,
    actions: actions.map(({ name, params, fallbacks }) => ({ name, params, fallbacks }))
  };
  const save = async () => {
    setError(undefined);
    try {
      if (rule === undefined) {
        const { data } = await request('POST', '/rules', { body });
        go('rule', { id: (data as RuleRow).id });
      } else {
        await request('PUT', '/rules/{id}', { params: { id: rule.id }, body });
        onSaved();
      }
      notify(R.saved);
    } catch (thrown) {
      setError(thrown);
    }
  };
  const isChanged =
    rule === undefined ||
    statement !== rule.rawsql ||
    description !== rule.description ||
    actions.some(({ isNew }) => isNew) ||
    actions.length !== rule.actions.length;
  return (
    <div class="split rule">
      <section class="panel">
        <h2>{R.statement}</h2>
        {rule === undefined && (
          <Field field={{ name: 'id', label: R.id, help: R.idHelp }} value={id} onChange={setId} />
        )}
        <Editor
          label={R.statement}
          text={statement}
          words={words}
          fault={fault}
          onChange={change}
          onRun={() => setRuns((count) => count + 1)}
        />
        <Faults fault={fault} hints={hints} error={error} />
        <Field field={{ name: 'description', label: R.description }} value={description} onChange={setDescription} />
        <Actions actions={actions} onChange={setActions} />
        <div class="form-buttons">
          <button type="button" class="primary" {...forAdministrators(isChanged)} onClick={() => void save()}>
            {rule === undefined ? R.create : R.save}
          </button>
          {isChanged ? (
            <Copies id={rule?.id} body={{ ...body, actions: withoutSecrets(body.actions) }} />
          ) : (
            <span class="aside">{R.unchanged}</span>
          )}
        </div>
      </section>
      <TestRun statement={statement} columns={columns} language={language} run={runs} onError={setError} />
    </div>
  );
}

/** The commands that save a rule. @param id undefined: a new one */
function Copies({ id, body }: { readonly id: string | undefined; readonly body: object }) {
  const input = JSON.stringify(body);
  if (id === undefined)
    return <CopyAs request={{ method: 'POST', path: '/rules', body }} ctl={['rules', 'add', '-']} input={input} />;
  const path = `/rules/${encodeURIComponent(id)}`;
  return <CopyAs request={{ method: 'PUT', path, body }} ctl={['rules', 'change', '--', id, '-']} input={input} />;
}

function draftOf({ name, params, fallbacks }: RuleRow['actions'][number]): ActionDraft {
  return { name, params, fallbacks, isNew: false };
}
