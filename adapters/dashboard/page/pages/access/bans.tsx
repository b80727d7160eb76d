import { useState } from 'preact/hooks';
import { getPage, post, request } from '../../app/requests.ts';
import { timeText } from '../../model/format.ts';
import { Action } from '../../parts/confirm.tsx';
import { CopyAs } from '../../parts/copy.tsx';
import type { FieldRow, FieldTexts } from '../../parts/fields.tsx';
import { List } from '../../parts/list.tsx';
import { Name } from '../../parts/name.tsx';
import { T } from '../../texts.ts';

const A = T.access;
const C = T.client;
const FIELDS: readonly FieldRow[] = [
  {
    name: 'as',
    label: A.subject,
    type: 'choice',
    choices: [
      ['clientid', T.clients.id],
      ['username', T.clients.user],
      ['peerhost', A.network]
    ]
  },
  { name: 'who', label: A.name, isRequired: true, help: A.banHelp },
  {
    name: 'minutes',
    label: C.banFor,
    type: 'choice',
    choices: [
      ['60', C.anHour],
      ['1440', C.aDay],
      ['10080', C.aWeek],
      ['', C.forever]
    ]
  },
  { name: 'reason', label: C.banReason }
];

function bodyOf({ as = 'clientid', who = '', minutes = '60', reason = '' }: FieldTexts) {
  return {
    as,
    who,
    ...(reason !== '' && { reason }),
    ...(minutes !== '' && { until: Math.floor(Date.now() / 1000) + Number(minutes) * 60 })
  };
}

/** The bans of client ids, user names and addresses. */
export function Bans() {
  const [version, setVersion] = useState(0);
  const reload = () => setVersion((before) => before + 1);
  return (
    <>
      <div class="section-actions">
        <CopyAs request={{ path: '/banned' }} ctl={['ban', 'list']} />
        <Action
          label={A.addBan}
          text={C.banText}
          submit={C.ban}
          fields={FIELDS}
          done={C.banned}
          run={async (values) => {
            await post('/banned', { body: bodyOf(values) });
            reload();
          }}
        >
          {(values) => <CopyAs request={{ method: 'POST', path: '/banned', body: bodyOf(values) }} />}
        </Action>
      </div>
      <List
        caption={A.bans}
        conditions={`${version}`}
        load={(page, signal) =>
          getPage('/banned', {
            query: { _limit: page._limit, ...(page._page !== undefined && { _page: page._page }) },
            signal
          })
        }
        keyOf={({ as, who }) => `${as} ${who}`}
        empty={A.noBans}
        columns={[
          { head: A.subject, cell: ({ as }) => as },
          { head: A.name, isWide: true, cell: ({ who }) => <Name of={who} /> },
          {
            head: C.banReason,
            isMinor: true,
            cell: ({ reason }) => (reason === 'undefined' ? '' : <Name of={reason} />)
          },
          { head: A.by, isMinor: true, cell: ({ by }) => (by === 'undefined' ? '' : <Name of={by} />) },
          { head: A.from, isMinor: true, cell: ({ at }) => timeText(at * 1000) },
          { head: A.until, cell: ({ until }) => (typeof until === 'number' ? timeText(until * 1000) : C.forever) },
          {
            head: '',
            cell: ({ as, who }) => {
              const path = `/banned/${as}/${encodeURIComponent(who)}`;
              return (
                <Action
                  label={A.lift}
                  title={A.liftTitle}
                  text={A.liftText}
                  kind="small"
                  done={A.lifted}
                  run={async () => {
                    await request('POST', '/x/delete', { body: { path } });
                    reload();
                  }}
                >
                  <CopyAs request={{ method: 'DELETE', path }} ctl={['ban', 'remove', '--as', as, '--', who]} />
                </Action>
              );
            }
          }
        ]}
      />
    </>
  );
}
