import { choice } from '../app/place.ts';
import { getPage } from '../app/requests.ts';
import { plainText } from '../model/format.ts';
import { type OptionRow, optionsIn, zonesOf } from '../model/options.ts';
import { CopyAs } from '../parts/copy.tsx';
import { Badge, Head } from '../parts/facts.tsx';
import { Conditions, type FieldRow } from '../parts/fields.tsx';
import { useLoaded } from '../parts/loading.ts';
import { Name } from '../parts/name.tsx';
import { type Column, Table } from '../parts/table.tsx';
import { T } from '../texts.ts';
import { OptionActions } from './options/actions.tsx';
import { valueText } from './options/words.ts';

const O = T.options;
/** More options than a broker has. */
const MAX_ROWS = 10_000;

/** The options of the broker, with their sources and whether they can be changed now. */
export function Page() {
  const { value, error, isLoading, reload } = useLoaded<readonly OptionRow[]>(
    'options',
    async (signal) => (await getPage('/x/options', { query: { _limit: MAX_ROWS }, signal })).data
  );
  const [q = '', source = '', when = '', zone = ''] = ['q', 'source', 'when', 'zone'].map(choice);
  const rows = value && optionsIn(value, { q, source, when, zone });
  return (
    <div class="options">
      <Head title={T.views.options}>
        <CopyAs
          request={{ path: '/x/options', query: { source } }}
          ctl={source === '' ? ['config', 'list'] : ['config', 'list', '--source', source]}
        />
      </Head>
      <p class="aside">{O.about}</p>
      <Conditions fields={fieldsOf(zonesOf(value ?? []))} />
      <Table
        isStacked
        caption={T.views.options}
        columns={columnsOf(reload)}
        rows={rows}
        keyOf={({ key }) => key}
        empty={O.noneFound}
        error={error}
        onRetry={reload}
        isLoading={isLoading}
      />
      {rows && rows.length > 0 && (
        <p class="aside" role="status">
          {T.table.shown(rows.length)}
          {rows.some((one) => one.source === 'override') && ` ${O.overrides}`}
        </p>
      )}
    </div>
  );
}

function fieldsOf(zones: readonly string[]): readonly FieldRow[] {
  return [
    { name: 'q', label: O.search, placeholder: O.part },
    {
      name: 'source',
      label: O.source,
      type: 'choice',
      choices: [
        ['', T.form.any],
        ['override', O.sources.override],
        ['option', O.sources.option],
        ['default', O.sources.default]
      ]
    },
    {
      name: 'when',
      label: O.when,
      type: 'choice',
      choices: [
        ['', T.form.any],
        ['now', O.whens.now],
        ['next connection', O.whens['next connection']],
        ['restart', O.whens.restart]
      ]
    },
    {
      name: 'zone',
      label: O.zone,
      type: 'choice',
      choices: [['', O.ownZones], ...zones.map((one) => [one, one] as const)]
    }
  ];
}

function columnsOf(reload: () => void): readonly Column<OptionRow>[] {
  return [
    {
      head: O.option,
      isWide: true,
      cell: ({ key, name, about }) => (
        <>
          <code class="option-key" title={O.inCode(name)}>
            {key.split(/(?<=[._])/).map((part) => [part, <wbr key={part} />])}
          </code>
          <p class="aside">{plainText(about)}</p>
        </>
      )
    },
    {
      head: O.value,
      cell: (row) => (
        <div class="option-value">
          <span class={row.source === 'default' ? '' : 'option-set'} title={`${row.value}`}>
            <Name of={valueText(row, row.value)} max={60} />
          </span>
          {row.source !== 'default' && row.value !== row.default && (
            <p class="aside">{O.default(valueText(row, row.default))}</p>
          )}
        </div>
      )
    },
    {
      head: O.source,
      cell: ({ source, origin }) => (
        <div class={origin === undefined ? '' : 'option-origin'}>
          {source === 'default' ? (
            <span class="aside option-source">{O.sources.default}</span>
          ) : (
            <Badge kind={source === 'override' ? 'warn' : 'quiet'}>{O.sources[source]}</Badge>
          )}
          {origin !== undefined && (
            <p class="aside">
              <Name of={origin} />
            </p>
          )}
        </div>
      )
    },
    {
      head: O.when,
      isMinor: true,
      cell: ({ takes_effect }) => <span title={O.whenAbouts[takes_effect]}>{O.whens[takes_effect]}</span>
    },
    { head: '', cell: (row) => <OptionActions row={row} onDone={reload} /> }
  ];
}
