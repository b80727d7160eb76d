import { useEffect, useState } from 'preact/hooks';
import { clearLog, isLogPaused, log, pauseLog, type Subscription, subscriptions } from '../../app/mqtt/client.ts';
import { sizeText, timeText } from '../../model/format.ts';
import { matchesFilter } from '../../model/mqtt.ts';
import { base64Of, type LogRow, MAX_KEPT_BYTES, MAX_LOG } from '../../model/mqtt-log.ts';
import { shortText } from '../../model/payload.ts';
import { Facts } from '../../parts/facts.tsx';
import { Field } from '../../parts/fields.tsx';
import { Icon } from '../../parts/icons.tsx';
import { Name } from '../../parts/name.tsx';
import { PayloadView } from '../../parts/value.tsx';
import { T } from '../../texts.ts';
import type { Choices } from './fields.tsx';

const M = T.websocket;
const L = T.tail;
/** Characters of a packet that its row shows. */
const SHORT = 300;
const SHOWN = {
  name: 'log',
  label: M.logFilter,
  type: 'choice',
  choices: [
    ['', M.logChoices.packets],
    ['messages', M.logChoices.messages],
    ['every', M.logChoices.every]
  ]
} as const;
const ARROWS = { sent: '→', received: '←', note: '' } as const;

function isShown({ name, direction }: LogRow, which: string): boolean {
  if (which === 'every') return true;
  if (which === 'messages') return name === 'PUBLISH' || direction === 'note';
  return !name.startsWith('PING');
}

/** The last packets, the newest first. Space pauses and goes on, C clears. A row that is opened pauses the log. */
export function Log({ form }: { readonly form: Choices }) {
  const [opened, setOpened] = useState<number>();
  const isPaused = isLogPaused.value;
  const { rows, held } = log.value;
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const { tagName } = event.target as HTMLElement;
      if (/^(INPUT|TEXTAREA|SELECT|BUTTON|A|SUMMARY)$/.test(tagName) || event.ctrlKey || event.metaKey || event.altKey)
        return;
      if (event.key === ' ') pauseLog(!isLogPaused.peek());
      else if (event.key === 'c') clearLog();
      else return;
      event.preventDefault();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
  const open = (number: number) => {
    setOpened(number === opened ? undefined : number);
    if (number !== opened) pauseLog(true);
  };
  const shown = rows.filter((row) => isShown(row, form.get('log'))).toReversed();
  return (
    <section class="mqtt-log" aria-label={M.log}>
      <div class="tail-bar">
        <button type="button" aria-pressed={isPaused} onClick={() => pauseLog(!isPaused)}>
          <Icon name={isPaused ? 'play' : 'pause'} /> {isPaused ? L.go : L.pause}
        </button>
        <button type="button" onClick={clearLog}>
          {L.clear}
        </button>
        <Field field={SHOWN} value={form.get('log')} onChange={(value) => form.set('log', value)} />
        <span class="aside number">{isPaused ? L.pausedAt(held.length) : L.shown(shown.length, MAX_LOG)}</span>
      </div>
      {shown.length === 0 ? (
        <div class="empty-table">{M.noLog}</div>
      ) : (
        <div class="table-frame tail" onScroll={({ currentTarget }) => currentTarget.scrollTop > 0 && pauseLog(true)}>
          <table class="rows">
            <thead>
              <tr>
                <th scope="col">{T.topics.time}</th>
                <th scope="col">{M.packet}</th>
                <th scope="col" class="wide-column">
                  {M.details}
                </th>
                <th scope="col" class="wide-column minor">
                  {M.payload}
                </th>
              </tr>
            </thead>
            <tbody>
              {shown.map((row) => (
                <Row key={row.number} row={row} isOpen={row.number === opened} onOpen={() => open(row.number)} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

function Row({ row, isOpen, onOpen }: { readonly row: LogRow; readonly isOpen: boolean; readonly onOpen: () => void }) {
  const { at, direction, name, topic, text, isBad, payload, payloadBytes, properties } = row;
  const hasMore = properties.length > 0 || payloadBytes > 0;
  return (
    <>
      <tr class={isBad ? 'mqtt-bad' : undefined}>
        <td class="tabular">{timeText(at, { ms: true }).slice(11)}</td>
        <td class="tabular">
          {direction !== 'note' && (
            <>
              <span class={`mqtt-arrow mqtt-${direction}`} aria-hidden="true">
                {ARROWS[direction]}
              </span>{' '}
              <span class="visually-hidden">{M.directions[direction]}</span>
              {name}
            </>
          )}
        </td>
        <td class="wide-column">
          {topic !== undefined && direction === 'received' && <Colors topic={topic} all={subscriptions.value} />}
          {topic !== undefined && topic !== '' && (
            <>
              <Name of={topic} max={80} />{' '}
            </>
          )}
          {hasMore ? (
            <button type="button" class="row-button" aria-expanded={isOpen} onClick={onOpen}>
              <Name of={text || M.details} max={SHORT} isPlain />
            </button>
          ) : (
            <Name of={text || ' '} max={SHORT} />
          )}
        </td>
        <td class="wide-column minor mono mqtt-payload">
          {payload !== undefined && payloadBytes > 0 && <bdi>{shortText(payload)}</bdi>}
        </td>
      </tr>
      {isOpen && (
        <tr class="below">
          <td colSpan={4}>
            <More row={row} />
          </td>
        </tr>
      )}
    </>
  );
}

function Colors({ topic, all }: { readonly topic: string; readonly all: readonly Subscription[] }) {
  const matching = all.filter(({ input }) => matchesFilter(input.topic, topic));
  return (
    <span title={matching.map(({ input }) => input.topic.slice(0, 200)).join('\n')}>
      {matching.map(({ color, input }) => (
        <span key={input.topic} class={`chart-mark line-${color}`} />
      ))}
    </span>
  );
}

function More({ row: { text, payload, payloadBytes, properties } }: { readonly row: LogRow }) {
  return (
    <div class="mqtt-more">
      {text.length > SHORT && (
        <p>
          <Name of={text} max={text.length} />
        </p>
      )}
      {properties.length > 0 && (
        <Facts rows={properties.map(([name, value]) => [name, <Name key={name} of={value} max={400} />])} />
      )}
      {payload !== undefined && payloadBytes > 0 && (
        <>
          {payloadBytes > payload.length && (
            <p class="aside">{M.cut(sizeText(MAX_KEPT_BYTES), sizeText(payloadBytes))}</p>
          )}
          <PayloadView of={{ payload: base64Of(payload), encoding: 'base64' }} />
        </>
      )}
    </div>
  );
}
