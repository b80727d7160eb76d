import { Head } from '../parts/facts.tsx';
import { T } from '../texts.ts';
import { Connection } from './websocket/connection.tsx';
import { useChoices } from './websocket/fields.tsx';
import { Log } from './websocket/log.tsx';
import { Publish } from './websocket/publish.tsx';
import { Subscriptions } from './websocket/subscriptions.tsx';

/** An MQTT client in the page. What a person has chosen in its forms is part of the address, without secrets. */
export function Page() {
  const form = useChoices();
  return (
    <>
      <Head title={T.views.websocket} />
      <p class="aside">{T.websocket.about}</p>
      <div class="mqtt">
        <div class="mqtt-forms">
          <Connection form={form} />
          <Subscriptions form={form} />
          <Publish form={form} />
        </div>
        <Log form={form} />
      </div>
    </>
  );
}
