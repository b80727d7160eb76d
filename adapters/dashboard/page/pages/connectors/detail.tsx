import type { ComponentChildren } from 'preact';
import { go, hrefOf } from '../../app/place.ts';
import { request } from '../../app/requests.ts';
import type { ConnectorKind } from '../../model/connectors.ts';
import { HIDDEN } from '../../model/copy.ts';
import { countText } from '../../model/format.ts';
import { Action } from '../../parts/confirm.tsx';
import { CopyAs } from '../../parts/copy.tsx';
import { Facts, Head } from '../../parts/facts.tsx';
import { Name } from '../../parts/name.tsx';
import { T } from '../../texts.ts';
import { Change, type ConnectorAction, OfApp } from './form.tsx';
import { type ConnectorRow, PATHS, StateOf, VIEW } from './rows.tsx';
import { StartStop } from './switch.tsx';
import { Test } from './test.tsx';

const C = T.connectors;

/** A connector with its state, its counters and its options. */
export function ConnectorView({
  kind,
  name,
  row,
  onDone
}: {
  readonly kind: ConnectorKind;
  readonly name: string;
  /** Undefined: there is none with this name. */
  readonly row: ConnectorRow | undefined;
  readonly onDone: () => void;
}) {
  return (
    <>
      <p class="crumbs">
        <a href={hrefOf(VIEW[kind])}>{T.views[VIEW[kind]]}</a>
      </p>
      <Head
        title={
          <>
            <Name of={name} /> {row && <StateOf row={row} />}
          </>
        }
      >
        {row && (
          <>
            <CopyAs
              request={{ path: `${PATHS[kind]}/${encodeURIComponent(name)}` }}
              ctl={[`${kind}s`, 'show', '--', name]}
            />
            {kind === 'webhook' && <Test name={name} />}
            <StartStop kind={kind} row={row} onDone={onDone} />
            <Change kind={kind} row={row} onDone={onDone} />
            <Remove kind={kind} row={row} onDone={onDone} />
          </>
        )}
      </Head>
      {row === undefined ? (
        <div class="empty-table">{C.gone[kind]}</div>
      ) : (
        <>
          {row.last_error !== undefined && (
            <div class="problem">
              <p class="problem-message">
                <Name of={row.last_error} max={400} />
              </p>
              <p>{row.status === 'missing' ? C.missing : C.again[kind]}</p>
            </div>
          )}
          <div class="fact-groups">
            <section>
              <h2>{C.counters}</h2>
              <Facts rows={countersOf(kind, row)} />
            </section>
            <section>
              <h2>{C.settings}</h2>
              {row.settings === undefined ? <p>{C.ofAppAbout}</p> : <Facts rows={settingRows(row.settings)} />}
            </section>
          </div>
        </>
      )}
    </>
  );
}

type Fact = readonly [name: string, value: ComponentChildren, about?: string];

function countersOf(kind: ConnectorKind, { waiting, figures }: ConnectorRow): readonly Fact[] {
  const labels = C.figures as Readonly<Record<string, string>>;
  return [
    [kind === 'webhook' ? C.waitingEvents : C.waitingMessages, countText(waiting), C.waitingAbout],
    ...Object.entries(figures).map(
      ([name, count]): Fact => [labels[name] ?? name.replaceAll('_', ' '), countText(count)]
    )
  ];
}

function settingRows({ name: _, ...settings }: NonNullable<ConnectorRow['settings']>): readonly Fact[] {
  return Object.entries(settings).map(
    ([key, value]): Fact => [
      key,
      value === HIDDEN ? (
        <span key={key} class="aside">
          {C.hidden}
        </span>
      ) : Array.isArray(value) ? (
        <ul key={key}>
          {value.map((one, at) => (
            <li key={at}>
              <Name of={typeof one === 'string' ? one : shortJson(one)} max={400} />
            </li>
          ))}
        </ul>
      ) : (
        <Name key={key} of={typeof value === 'string' ? value : JSON.stringify(value)} max={400} />
      )
    ]
  );
}

/** The fields of an entry, as `filter sensors/#, qos 1`. */
function shortJson(entry: unknown): string {
  if (typeof entry !== 'object' || entry === null) return JSON.stringify(entry);
  return Object.entries(entry)
    .map(([name, value]) => `${name} ${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(', ');
}

function Remove({ kind, row: { name, settings }, onDone }: ConnectorAction) {
  if (settings === undefined) return <OfApp label={C.remove} />;
  const path = `${PATHS[kind]}/${encodeURIComponent(name)}`;
  return (
    <Action
      label={C.remove}
      title={C.removeOf(name)}
      isDangerous
      text={C.removeTexts[kind]}
      done={C.removed(name)}
      run={() => request('POST', '/x/delete', { body: { path } })}
      onDone={() => {
        onDone();
        go(VIEW[kind]);
      }}
    >
      <CopyAs request={{ method: 'DELETE', path }} ctl={[`${kind}s`, 'remove', '--', name]} />
    </Action>
  );
}
