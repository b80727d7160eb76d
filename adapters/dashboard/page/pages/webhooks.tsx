import { Connectors } from './connectors/connectors.tsx';

/** The webhooks, which send events to web servers. */
export function Page() {
  return <Connectors kind="webhook" />;
}
