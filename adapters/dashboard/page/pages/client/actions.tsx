import { post } from '../../app/requests.ts';
import { Action } from '../../parts/confirm.tsx';
import { CopyAs } from '../../parts/copy.tsx';
import type { FieldRow, FieldTexts } from '../../parts/fields.tsx';
import { T } from '../../texts.ts';
import { BAN_DURATION, BAN_REASON, ban, copyOfBan } from '../ban.ts';
import type { ClientRow } from './row.ts';

const C = T.client;

/** Ban a client by its id, its user name or its address. @param client undefined: it has no session, so only its id is known */
export function BanClient({
  id,
  client,
  onDone
}: {
  readonly id: string;
  readonly client: ClientRow | undefined;
  readonly onDone: () => void;
}) {
  const subjects = {
    clientid: id,
    ...(client !== undefined && client.username !== 'undefined' && { username: client.username }),
    ...(client !== undefined && client.ip_address !== 'undefined' && { peerhost: client.ip_address })
  } as Readonly<Record<string, string>>;
  const fields: readonly FieldRow[] = [
    {
      name: 'as',
      label: C.banBy,
      type: 'choice',
      choices: Object.keys(subjects).map((as) => [as, C.banSubjects[as as keyof typeof C.banSubjects]])
    },
    BAN_DURATION,
    BAN_REASON
  ];
  const wanted = ({ as = 'clientid', minutes = '60', reason = '' }: FieldTexts) => ({
    as,
    who: subjects[as],
    minutes,
    reason
  });
  return (
    <Action
      name="ban"
      label={C.ban}
      title={C.banTitle}
      of={id}
      text={C.banText}
      submit={C.ban}
      fields={fields}
      isDangerous
      done={(text: string) => text}
      run={(values) => ban(wanted(values))}
      onDone={onDone}
    >
      {(values) => <CopyAs {...copyOfBan(wanted(values))} />}
    </Action>
  );
}

/** Record everything that a client does for some minutes. */
export function TraceClient({ id }: { readonly id: string }) {
  return (
    <Action
      name="trace"
      label={C.trace}
      title={C.traceTitle}
      of={id}
      text={C.traceText}
      submit={C.trace}
      fields={[
        {
          name: 'duration_s',
          label: C.traceFor,
          type: 'choice',
          choices: [
            ['300', C.fiveMinutes],
            ['3600', C.anHour],
            ['86400', C.aDay]
          ]
        }
      ]}
      done={C.traced}
      run={({ duration_s = '300' }) => post('/x/traces', { body: { clientid: id, duration_s: Number(duration_s) } })}
    >
      {({ duration_s = '300' }) => (
        <CopyAs
          request={{ method: 'POST', path: '/x/traces', body: { clientid: id, duration_s: Number(duration_s) } }}
          ctl={['traces', 'start', `--client=${id}`, '--seconds', duration_s]}
        />
      )}
    </Action>
  );
}
