import { Connectors } from './connectors/connectors.tsx';

/** The bridges to other MQTT servers. */
export function Page() {
  return <Connectors kind="bridge" />;
}
