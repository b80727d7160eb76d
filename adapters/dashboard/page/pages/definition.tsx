import { useState } from 'preact/hooks';
import { choice, forgetDrafts, go, hrefOf, useUnsaved } from '../app/place.ts';
import { isAdministrator } from '../app/session.ts';
import { streams } from '../app/streams.ts';
import { DDL_WORDS, type Definition, filterOf, typeName } from '../model/streams.ts';
import { Action, forAdministrators } from '../parts/confirm.tsx';
import { CopyAs } from '../parts/copy.tsx';
import { Editor, type Word } from '../parts/editor/editor.tsx';
import { Faults } from '../parts/editor/faults.tsx';
import { Facts, Head } from '../parts/facts.tsx';
import { useLoaded } from '../parts/loading.ts';
import { Name } from '../parts/name.tsx';
import { notify } from '../parts/notices.tsx';
import { Problem } from '../parts/problem.tsx';
import { Table } from '../parts/table.tsx';
import { T } from '../texts.ts';
import { useDefinitionCheck } from './stream/words.ts';

const S = T.streamRules;
const WORDS: readonly Word[] = [
  ...DDL_WORDS.types.map((label): Word => ({ label, kind: 'stream' })),
  ...DDL_WORDS.options.map((label): Word => ({ label, kind: 'column' }))
];

/** A stream or a table: its statement, columns and options. Without a name, a new one. */
export function Page() {
  const kind = choice('kind') === 'table' ? 'table' : 'stream';
  const name = choice('name');
  const { value, error, reload } = useLoaded(`${kind} ${name}`, async (signal) =>
    name === ''
      ? undefined
      : ((await streams('GET', `/${kind}s/${encodeURIComponent(name)}`, { signal })) as Definition)
  );
  return (
    <>
      <p class="crumbs">
        <a href={hrefOf('streams', { tab: `${kind}s` })}>{kind === 'table' ? S.tables : S.streams}</a>
      </p>
      <Head title={name === '' ? kind === 'table' ? S.newTable : S.newStream : <Name of={name} />}>
        {value && <Actions kind={kind} definition={value} />}
      </Head>
      {error !== undefined && <Problem error={error} onRetry={reload} />}
      {(name === '' || value) && <Statement key={`${kind} ${name}`} kind={kind} definition={value} onSaved={reload} />}
      {value && <Details definition={value} />}
    </>
  );
}

type Kind = 'stream' | 'table';

function Actions({ kind, definition }: { readonly kind: Kind; readonly definition: Definition }) {
  const { Name: name } = definition;
  const filter = kind === 'stream' ? filterOf(definition) : undefined;
  const path = `/${kind}s/${encodeURIComponent(name)}`;
  return (
    <>
      {filter !== undefined && (
        <a class="button" href={hrefOf('tail', { filter })}>
          {T.views.tail}
        </a>
      )}
      {kind === 'stream' && (
        <a class="button" href={hrefOf('stream', { over: name })}>
          {S.ruleOver}
        </a>
      )}
      <Action
        label={T.rules.remove}
        title={kind === 'table' ? S.removeTable : S.removeStream}
        of={name}
        text={S.removeText}
        isDangerous
        fields={[{ name: 'force', label: S.force, type: 'flag', help: S.forceHelp }]}
        done={S.removed}
        run={async ({ force }) => {
          await streams('DELETE', `${path}${force === 'true' ? '?force=true' : ''}`);
          forgetDrafts();
          go('streams', { tab: `${kind}s` }, true);
        }}
      >
        <CopyAs of="streams" request={{ method: 'DELETE', path }} ctl={['stream', `drop-${kind}`, '--', name]} />
      </Action>
    </>
  );
}

function Statement({
  kind,
  definition,
  onSaved
}: {
  readonly kind: Kind;
  readonly definition: Definition | undefined;
  readonly onSaved: () => void;
}) {
  const before = definition?.sql ?? (kind === 'table' ? S.tableExample : S.streamExample);
  const [sql, setSql] = useState(before);
  const [error, setError] = useState<unknown>();
  const { fault, hints } = useDefinitionCheck(sql, definition?.Name);
  const change = (text: string) => {
    setSql(text);
    setError(undefined);
  };
  const method = definition === undefined ? 'POST' : 'PUT';
  const path = definition === undefined ? `/${kind}s` : `/${kind}s/${encodeURIComponent(definition.Name)}`;
  const ctl = definition === undefined ? ['sql', '-'] : [`replace-${kind}`, '--', definition.Name, '-'];
  const forget = useUnsaved(sql !== before && isAdministrator.value);
  const save = async () => {
    setError(undefined);
    try {
      notify(`${await streams(method, path, { body: { sql } })}`);
      forget();
      if (definition === undefined) go('streams', { tab: `${kind}s` });
      else onSaved();
    } catch (thrown) {
      setError(thrown);
    }
  };
  const isChanged = definition === undefined || sql !== definition.sql;
  return (
    <section class="panel">
      <h2>{T.rules.statement}</h2>
      <Editor
        label={T.rules.statement}
        text={before}
        words={WORDS}
        fault={fault}
        onChange={change}
        onRun={() => undefined}
      />
      <Faults fault={fault} hints={hints} error={error} />
      <p class="aside">{definition === undefined ? S.statementHelp : S.replaceHelp}</p>
      <div class="form-buttons">
        <button type="button" class="primary" {...forAdministrators(isChanged)} onClick={() => void save()}>
          {definition !== undefined ? T.rules.save : T.form.create}
        </button>
        {isChanged ? (
          <CopyAs of="streams" request={{ method, path, body: { sql } }} ctl={['stream', ...ctl]} input={sql} />
        ) : (
          <span class="aside">{T.rules.unchanged}</span>
        )}
      </div>
    </section>
  );
}

function Details({ definition: { StreamFields, Options } }: { readonly definition: Definition }) {
  const set = Object.entries(Options).filter(([, value]) => value !== '' && value !== 0 && value !== false);
  return (
    <div class="fact-groups">
      <section>
        <h2>{S.columns}</h2>
        {StreamFields === null || StreamFields.length === 0 ? (
          <p class="aside">{S.noColumns}</p>
        ) : (
          <Table
            caption={S.columns}
            rows={StreamFields}
            keyOf={({ Name: name }) => name}
            empty=""
            columns={[
              { head: T.access.name, cell: ({ Name: name }) => <Name of={name} /> },
              { head: S.type, cell: ({ FieldType }) => typeName(FieldType) }
            ]}
          />
        )}
      </section>
      <section>
        <h2>{S.options}</h2>
        <Facts rows={set.map(([name, value]) => [name, <Name key={name} of={`${value}`} max={200} />])} />
      </section>
    </div>
  );
}
