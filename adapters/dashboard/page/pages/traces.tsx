import { choice, hrefOf } from '../app/place.ts';
import { get, post, request } from '../app/requests.ts';
import { sizeText, timeText } from '../model/format.ts';
import { Action } from '../parts/confirm.tsx';
import { CopyAs } from '../parts/copy.tsx';
import { Badge, Head } from '../parts/facts.tsx';
import type { FieldRow, FieldTexts } from '../parts/fields.tsx';
import { useLoaded } from '../parts/loading.ts';
import { Name } from '../parts/name.tsx';
import { type Column, Table } from '../parts/table.tsx';
import { T } from '../texts.ts';
import { Removal } from './access/removal.tsx';
import { Lines } from './traces/lines.tsx';

const R = T.traces;
const EVERY_MS = 3_000;

interface Trace {
  readonly id: number;
  readonly clientid?: string;
  readonly topic?: string;
  readonly ip_address?: string;
  readonly started_at: number;
  readonly status: string;
  readonly lines: number;
  readonly bytes: number;
  readonly kept_lines?: number;
}

const FIELDS: readonly FieldRow[] = [
  { name: 'clientid', label: R.clientId },
  { name: 'topic', label: R.filter },
  { name: 'ip_address', label: R.ip },
  { name: 'duration_s', label: R.duration, type: 'choice', choices: Object.entries(R.durations) },
  { name: 'payload', label: R.payload, type: 'choice', choices: Object.entries(R.payloads) },
  { name: 'max_payload_bytes', label: R.maxBytes, type: 'number', min: 0, max: 65_536, placeholder: '1024' }
];

function bodyOf({ clientid, topic, ip_address, duration_s = '60', payload = 'text', max_payload_bytes }: FieldTexts) {
  return {
    ...(clientid && { clientid }),
    ...(topic && { topic }),
    ...(ip_address && { ip_address }),
    duration_s: Number(duration_s),
    payload: payload as 'text',
    ...(max_payload_bytes && { max_payload_bytes: Number(max_payload_bytes) })
  };
}

function wordsOf({
  clientid,
  topic,
  ip_address,
  duration_s,
  payload,
  max_payload_bytes
}: ReturnType<typeof bodyOf>): readonly string[] {
  const flags = { client: clientid, topic, address: ip_address, payload, bytes: max_payload_bytes };
  return [
    ...Object.entries(flags).flatMap(([name, value]) => (value ? [`--${name}=${value}`] : [])),
    `--seconds=${duration_s}`
  ];
}

/** The traces, and the lines of one of them as they come. */
export function Page() {
  const shown = Number(choice('id'));
  const { value, error, reload } = useLoaded<readonly Trace[]>(
    'traces',
    (signal, isBackground) => get('/x/traces', { signal, isBackground }) as Promise<readonly Trace[]>,
    { everyMs: EVERY_MS }
  );
  const trace = value?.find(({ id }) => id === shown);
  return (
    <>
      <Head title={T.views.traces}>
        <CopyAs request={{ path: '/x/traces' }} ctl={['traces', 'list']} />
        <Start onDone={reload} />
      </Head>
      <Table
        caption={T.views.traces}
        columns={columnsFor(reload)}
        rows={value}
        error={error}
        onRetry={reload}
        keyOf={({ id }) => id}
        rowClass={({ id }) => (id === shown ? 'chosen' : '')}
        empty={R.none}
      />
      {shown > 0 ? (
        <Lines key={shown} id={shown} isOfApp={trace !== undefined && trace.kept_lines === undefined} />
      ) : (
        value !== undefined && value.length > 0 && <p class="aside">{R.needsOne}</p>
      )}
    </>
  );
}

function columnsFor(reload: () => void): readonly Column<Trace>[] {
  const statuses = R.statuses as Readonly<Record<string, string | undefined>>;
  return [
    { head: R.trace, cell: ({ id }) => <a href={hrefOf('traces', { id: `${id}` })}>{R.open(id)}</a> },
    {
      head: R.of,
      isWide: true,
      cell: ({ clientid, topic, ip_address }) => (
        <Name
          of={[clientid && R.client(clientid), topic && R.messages(topic), ip_address && R.address(ip_address)]
            .filter(Boolean)
            .join(', ')}
        />
      )
    },
    {
      head: R.status,
      cell: ({ status }) => (
        <Badge kind={status === 'active' ? 'good' : status === 'error' ? 'bad' : 'quiet'}>
          {statuses[status] ?? status}
        </Badge>
      )
    },
    { head: R.started, isMinor: true, cell: ({ started_at }) => timeText(started_at) },
    { head: R.lines, isNumber: true, cell: ({ lines }) => lines.toLocaleString('en') },
    { head: R.size, isNumber: true, isMinor: true, cell: ({ bytes }) => sizeText(bytes) },
    {
      head: '',
      cell: ({ id, status }) => (
        <span class="section-actions">
          {status === 'active' && <Stop id={id} onDone={reload} />}
          <Removal
            path={`/x/traces/${id}`}
            label={status === 'active' ? R.removeActive : R.remove}
            title={R.removeTitle}
            of={`${id}`}
            text={R.removeText}
            done={R.removed}
            onDone={reload}
          >
            <CopyAs request={{ method: 'DELETE', path: `/x/traces/${id}` }} ctl={['traces', 'stop', `${id}`]} />
          </Removal>
        </span>
      )
    }
  ];
}

/** End a trace, and keep its lines. */
function Stop({ id, onDone }: { readonly id: number; readonly onDone: () => void }) {
  const path = `/x/traces/${id}/stop`;
  return (
    <Action
      label={R.stop}
      title={R.stopOf(id)}
      text={R.stopText}
      kind="small"
      done={R.stopped}
      run={() => request('POST', path)}
      onDone={onDone}
    >
      <CopyAs request={{ method: 'POST', path }} ctl={['traces', 'end', `${id}`]} />
    </Action>
  );
}

function Start({ onDone }: { readonly onDone: () => void }) {
  return (
    <Action
      name="start"
      label={R.start}
      text={R.startText}
      submit={R.startNow}
      fields={FIELDS}
      done={R.begun}
      onDone={onDone}
      run={(values) => post('/x/traces', { body: bodyOf(values) })}
    >
      {(values) => (
        <CopyAs
          request={{ method: 'POST', path: '/x/traces', body: bodyOf(values) }}
          ctl={['traces', 'start', ...wordsOf(bodyOf(values))]}
        />
      )}
    </Action>
  );
}
