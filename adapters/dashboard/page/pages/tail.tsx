import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { useWatch } from '../app/live.ts';
import { choice, hrefOf } from '../app/place.ts';
import { sizeText, timeText } from '../model/format.ts';
import { bytesOf, shortText } from '../model/payload.ts';
import {
  type Busiest,
  type BusyName,
  EMPTY_TAIL,
  emptied,
  MAX_ROWS,
  resumed,
  type TailRow,
  type TailState,
  withPart
} from '../model/tail.ts';
import { CopyAs } from '../parts/copy.tsx';
import { Head } from '../parts/facts.tsx';
import { Conditions, type FieldRow } from '../parts/fields.tsx';
import { Icon } from '../parts/icons.tsx';
import { Name, Publisher } from '../parts/name.tsx';
import { PayloadView } from '../parts/value.tsx';
import { T } from '../texts.ts';

const L = T.tail;
const FIELDS: readonly FieldRow[] = [
  { name: 'filter', label: L.filter, placeholder: '#' },
  { name: 'where', label: L.where, placeholder: L.wherePlaceholder, help: L.whereHelp },
  {
    name: 'names',
    label: L.names,
    type: 'choice',
    choices: [
      ['', L.messages],
      ['message.publish,message.delivered,message.acked,message.dropped', L.allOfMessages],
      ['message.dropped', L.drops],
      ['client.connected,client.disconnected,client.rejected', L.connections],
      ['session.subscribed,session.unsubscribed', L.subscriptions]
    ]
  }
];

/** The events in the address that the choice does not have, such as one that was written by hand. */
function fieldsFor(names: string): readonly FieldRow[] {
  return FIELDS.map((field) =>
    field.choices === undefined || field.choices.some(([value]) => value === names)
      ? field
      : { ...field, choices: [...field.choices, [names, names]] }
  );
}

/** Messages as they are published. */
export function Page() {
  const [filter, where, names] = [choice('filter'), choice('where'), choice('names')];
  return (
    <>
      <Head title={T.views.tail}>
        <CopyAs
          request={{ path: '/x/tail', query: { filter, where, names } }}
          ctl={[
            'tail',
            ...(where === '' ? [] : [`--where=${where}`]),
            ...(names === '' ? [] : [`--names=${names}`]),
            '--',
            filter === '' ? '#' : filter
          ]}
        />
      </Head>
      <div class="tail-conditions">
        <Conditions fields={fieldsFor(names)} />
      </div>
      <Rows key={`${filter}\n${where}\n${names}`} filter={filter} where={where} names={names} />
    </>
  );
}

interface Failure {
  readonly message: string;
}

/** The rows of a selection. Space pauses and goes on, C clears, unless a field has the focus. Reading a payload, or scrolling down, pauses. */
function Rows({ filter, where, names }: { readonly filter: string; readonly where: string; readonly names: string }) {
  const [state, setState] = useState<TailState>(EMPTY_TAIL);
  const [failure, setFailure] = useState<Failure>();
  const [isPaused, setPaused] = useState(false);
  const [opened, setOpened] = useState<number>();
  const paused = useRef(false);
  paused.current = isPaused;
  const frame = useRef<HTMLElement>(null);
  const events = names.split(',').flatMap((name) => (name.trim() === '' ? [] : [name.trim()]));
  useWatch('tail', { kind: 'tail', filter, where, ...(events.length > 0 && { names: events }) }, (data) => {
    setFailure(data.failure as Failure | undefined);
    setState((before) => withPart(before, data, paused.current));
  });
  const toggle = () => {
    setPaused(!paused.current);
    if (!paused.current) return;
    setOpened(undefined);
    frame.current?.scrollTo(0, 0);
    setState(resumed);
  };
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const { tagName } = event.target as HTMLElement;
      if (/^(INPUT|TEXTAREA|SELECT|BUTTON|A|SUMMARY)$/.test(tagName) || event.ctrlKey || event.metaKey || event.altKey)
        return;
      if (event.key === ' ') toggle();
      else if (event.key === 'c') setState(emptied);
      else return;
      event.preventDefault();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
  if (failure !== undefined)
    return (
      <pre class="problem problem-message" role="alert">
        {failure.message}
      </pre>
    );
  const { rows, held } = state;
  return (
    <>
      <div class="tail-bar">
        <button type="button" aria-pressed={isPaused} onClick={toggle}>
          <Icon name={isPaused ? 'play' : 'pause'} /> {isPaused ? L.go : L.pause}
        </button>
        <button type="button" onClick={() => setState(emptied)}>
          {L.clear}
        </button>
        <span class="aside keys">{L.keys}</span>
        <span class="aside number">{isPaused ? L.pausedAt(held.length) : L.shown(rows.length, MAX_ROWS)}</span>
      </div>
      <div class="tail-parts">
        <BusiestNames of={state.busiest} areClients={events.some((name) => !name.startsWith('message.'))} />
        <section
          ref={frame}
          class="table-frame tail tail-messages"
          aria-label={T.views.tail}
          onScroll={({ currentTarget }) => currentTarget.scrollTop > 0 && setPaused(true)}
        >
          {rows.length === 0 ? (
            <p class="empty-tail">{L.waiting}</p>
          ) : (
            <RowList
              rows={rows}
              opened={opened}
              onOpen={(number) => {
                setOpened(number === opened ? undefined : number);
                if (number === opened) return;
                paused.current = true; // also for rows that come before the page is drawn again
                setPaused(true);
              }}
            />
          )}
        </section>
      </div>
      <LeftOut of={state} />
    </>
  );
}

/** The counts of what is not in the rows. */
function LeftOut({ of: { skipped, failed, error } }: { readonly of: TailState }) {
  return (
    <>
      {skipped > 0 && <p class="warning tabular">{L.skipped(skipped)}</p>}
      {failed > 0 && <p class="warning">{L.failed(failed, error ?? '')}</p>}
    </>
  );
}

/** Maximum number of rows that are drawn, the newest ones. Older ones only count towards the busiest publishers and topics. */
const DRAWN = 200;

function RowList({
  rows,
  opened,
  onOpen
}: {
  readonly rows: readonly TailRow[];
  readonly opened: number | undefined;
  readonly onOpen: (number: number) => void;
}) {
  return (
    <table class="rows">
      <thead>
        <tr>
          <th scope="col">{T.topics.time}</th>
          <th scope="col">{T.topics.topic}</th>
          <th scope="col">{T.topics.publisher}</th>
          <th scope="col" class="number minor">
            {T.topics.qos}
          </th>
          <th scope="col" class="number minor">
            {T.topics.size}
          </th>
          <th scope="col" class="wide-column">
            {T.topics.payload}
          </th>
        </tr>
      </thead>
      <tbody>
        {rows
          .slice(-DRAWN)
          .toReversed()
          .map((row) => (
            <Row key={row.number} row={row} isOpen={row.number === opened} onOpen={() => onOpen(row.number)} />
          ))}
      </tbody>
    </table>
  );
}

function Row({
  row,
  isOpen,
  onOpen
}: {
  readonly row: TailRow;
  readonly isOpen: boolean;
  readonly onOpen: () => void;
}) {
  const { at, event, columns, payload, payloadBytes } = row;
  const {
    topic = '',
    clientid,
    qos,
    flags,
    reason
  } = columns as { reason?: unknown; topic?: string; clientid?: string; qos?: number; flags?: { retain?: boolean } };
  return (
    <>
      <tr>
        <td class="tabular">{timeText(at, { ms: true }).slice(11)}</td>
        <td>
          {event !== 'message.publish' && <span class="aside">{event} </span>}
          {topic !== '' && (
            <a href={hrefOf('topics', { topic })}>
              <Name of={topic} max={80} />
            </a>
          )}
          {flags?.retain === true && <span class="mark mark-retained"> {L.retained}</span>}
        </td>
        <td>
          {typeof clientid === 'string' && clientid !== '' && <Publisher id={clientid} rule={row.rule} max={40} />}
        </td>
        <td class="number minor">{qos}</td>
        <td class="number minor">{payloadBytes === undefined ? '' : sizeText(payloadBytes)}</td>
        <td class="wide-column">
          {payload === undefined && typeof reason === 'string' && <Name of={reason} />}
          {payload !== undefined && (
            <button type="button" class="row-button mono tail-payload" aria-expanded={isOpen} onClick={onOpen}>
              <bdi>{shortText(bytesOf(payload) ?? new Uint8Array()) || T.nameView.empty}</bdi>
            </button>
          )}
        </td>
      </tr>
      {isOpen && (
        <tr class="below">
          <td colSpan={6}>
            <PayloadView of={{ payload, encoding: 'base64', payloadBytes, topic }} />
          </td>
        </tr>
      )}
      {row.missing !== undefined && (
        <tr class="below">
          <td colSpan={6}>
            <p class="warning">{L.missing(row.missing.count)}</p>
          </td>
        </tr>
      )}
    </>
  );
}

/** The publishers and topics of most messages: they show which client floods the broker. The places are there before the names, so nothing moves then. */
function BusiestNames({
  of: { events, publishers, topics },
  areClients
}: {
  readonly of: Busiest;
  readonly areClients: boolean;
}) {
  const list = (title: string, names: readonly BusyName[], shown: (of: BusyName) => ComponentChildren) => (
    <section class="panel">
      <h2>{title}</h2>
      {names.length === 0 && <p class="aside">{L.noneBusy}</p>}
      <ol class="busiest">
        {names.map((of) => (
          <li key={`${of.rule?.kind} ${of.name}`}>
            <span class="number" title={L.count(of.count)}>
              {L.share(Math.round((100 * of.count) / events))}
            </span>
            {shown(of)}
          </li>
        ))}
      </ol>
    </section>
  );
  return (
    <aside class="tail-busiest" aria-label={L.busiest}>
      {list(areClients ? L.busiestClients : L.busiestPublishers, publishers, ({ name, rule }) => (
        <Publisher id={name} rule={rule} max={60} />
      ))}
      {list(L.busiestTopics, topics, ({ name }) => (
        <a href={hrefOf('topics', { topic: name })}>
          <Name of={name} max={60} />
        </a>
      ))}
      <p class="aside tabular">{L.counted(events)}</p>
      <p class="aside">
        <a href={hrefOf('clients', { sort: 'received' })}>{L.allBusiest}</a>
      </p>
    </aside>
  );
}
