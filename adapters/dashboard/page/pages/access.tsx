import { choice } from '../app/place.ts';
import { isAdministrator } from '../app/session.ts';
import { Head, Tabs } from '../parts/facts.tsx';
import { VIEW_ROWS } from '../parts/views.tsx';
import { T } from '../texts.ts';
import { Applications } from './access/applications.tsx';
import { Bans } from './access/bans.tsx';
import { MqttUsers } from './access/mqtt-users.tsx';
import { Rights } from './access/rights.tsx';
import { Rules } from './access/rules.tsx';
import { Users } from './access/users.tsx';

const A = T.access;

/** Access control: a question about rights, access rules, bans, MQTT users, users of the console, and applications. */
export function Page() {
  const tab = choice('tab') || 'rights';
  return (
    <>
      <Head title={T.views.access} />
      <Tabs label={A.parts} shown={tab} tabs={[['rights', A.rights], ...Object.entries(VIEW_ROWS.access.tabs ?? {})]} />
      {!isAdministrator.value && (tab === 'users' || tab === 'apps') && <p class="warning">{A.viewers}</p>}
      {tab === 'rights' && <Rights />}
      {tab === 'rules' && <Rules />}
      {tab === 'bans' && <Bans />}
      {tab === 'mqtt' && <MqttUsers />}
      {tab === 'users' && <Users />}
      {tab === 'apps' && <Applications />}
    </>
  );
}
