import { useState } from 'preact/hooks';
import { getPage } from '../../app/requests.ts';
import { timeText } from '../../model/format.ts';
import { Action } from '../../parts/confirm.tsx';
import { CopyAs } from '../../parts/copy.tsx';
import type { FieldRow, FieldTexts } from '../../parts/fields.tsx';
import { List } from '../../parts/list.tsx';
import { Name } from '../../parts/name.tsx';
import { T } from '../../texts.ts';
import { BAN_DURATION, BAN_REASON, ban, copyOfBan } from '../ban.ts';
import { LiftBan } from './lift.tsx';

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
  BAN_DURATION,
  BAN_REASON
];

function wanted({ as = 'clientid', who = '', minutes = '60', reason = '' }: FieldTexts) {
  return { as, who, minutes, reason };
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
          name="ban"
          label={A.addBan}
          text={C.banText}
          submit={C.ban}
          fields={FIELDS}
          done={(text: string) => text}
          run={(values) => ban(wanted(values))}
          onDone={reload}
        >
          {(values) => <CopyAs {...copyOfBan(wanted(values))} />}
        </Action>
      </div>
      <List
        caption={A.bans}
        isStacked
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
          { head: A.subject, cell: ({ as }) => (C.banSubjects as Readonly<Record<string, string>>)[as] ?? as },
          { head: A.name, cell: ({ who }) => <Name of={who} /> },
          {
            head: C.banReason,
            isWide: true,
            isMinor: true,
            cell: ({ reason }) => (reason === 'undefined' ? '' : <Name of={reason} />)
          },
          { head: A.by, isMinor: true, cell: ({ by }) => (by === 'undefined' ? '' : <Name of={by} />) },
          { head: A.from, isMinor: true, cell: ({ at }) => timeText(at * 1000) },
          { head: A.until, cell: ({ until }) => (typeof until === 'number' ? timeText(until * 1000) : C.forever) },
          {
            head: '',
            cell: ({ as, who }) => <LiftBan as={as} who={who} onDone={reload} />
          }
        ]}
      />
    </>
  );
}
