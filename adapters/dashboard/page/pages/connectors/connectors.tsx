import { choice, hrefOf } from '../../app/place.ts';
import type { ConnectorKind } from '../../model/connectors.ts';
import { countText } from '../../model/format.ts';
import { CopyAs } from '../../parts/copy.tsx';
import { Head } from '../../parts/facts.tsx';
import { useLoaded } from '../../parts/loading.ts';
import { Name } from '../../parts/name.tsx';
import { type Column, Table } from '../../parts/table.tsx';
import { T } from '../../texts.ts';
import { ConnectorView } from './detail.tsx';
import { Add } from './form.tsx';
import { type ConnectorRow, droppedOf, loadRows, PATHS, StateOf, targetOf, VIEW } from './rows.tsx';
import { StartStop } from './switch.tsx';

const C = T.connectors;
const EVERY_MS = 3_000;

/** The connectors of a kind with their states, or the one that the address names. */
export function Connectors({ kind }: { readonly kind: ConnectorKind }) {
  const { value, error, reload } = useLoaded(kind, (signal, isBackground) => loadRows(kind, signal, isBackground), {
    everyMs: EVERY_MS
  });
  const name = choice('name');
  if (name !== '' && value !== undefined)
    return <ConnectorView kind={kind} name={name} row={value.find((row) => row.name === name)} onDone={reload} />;
  return (
    <>
      <Head title={T.views[VIEW[kind]]}>
        <CopyAs request={{ path: PATHS[kind] }} ctl={[`${kind}s`, 'list']} />
        <Add kind={kind} onDone={reload} />
      </Head>
      <p class="aside">{C.abouts[kind]}</p>
      <Table
        caption={T.views[VIEW[kind]]}
        columns={columnsOf(kind, reload)}
        rows={value}
        error={error}
        onRetry={reload}
        keyOf={(row) => row.name}
        empty={C.none[kind]}
      />
    </>
  );
}

function columnsOf(kind: ConnectorKind, reload: () => void): readonly Column<ConnectorRow>[] {
  return [
    {
      head: C.name,
      cell: ({ name }) => (
        <a class="short-name" href={hrefOf(VIEW[kind], { name })}>
          <Name of={name} />
        </a>
      )
    },
    {
      head: C.target,
      isWide: true,
      cell: (row) => {
        const target = targetOf(row);
        return (
          <>
            {target === undefined ? <span class="row-about">{C.ofApp}</span> : <Name of={target} />}
            {row.last_error !== undefined && (
              <p class="row-error">
                <Name of={row.last_error} max={200} />
              </p>
            )}
          </>
        );
      }
    },
    { head: C.state, cell: (row) => <StateOf row={row} /> },
    { head: C.sent, isNumber: true, isMinor: true, cell: ({ figures }) => countText(figures.sent) },
    {
      head: C.dropped,
      isNumber: true,
      isMinor: true,
      about: C.droppedAbout,
      cell: (row) => countText(droppedOf(row))
    },
    {
      head: C.waiting,
      isNumber: true,
      isMinor: true,
      about: C.waitingAbout,
      cell: ({ waiting }) => countText(waiting)
    },
    { head: '', cell: (row) => <StartStop kind={kind} row={row} isSmall onDone={reload} /> }
  ];
}
