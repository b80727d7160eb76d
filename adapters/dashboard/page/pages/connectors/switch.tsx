import { request } from '../../app/requests.ts';
import type { ConnectorKind } from '../../model/connectors.ts';
import { Action } from '../../parts/confirm.tsx';
import { CopyAs } from '../../parts/copy.tsx';
import { T } from '../../texts.ts';
import { type ConnectorRow, PATHS } from './rows.tsx';

const C = T.connectors;

/** Start or stop a connector. */
export function StartStop({
  kind,
  row: { name, started },
  onDone,
  isSmall = false
}: {
  readonly kind: ConnectorKind;
  readonly row: ConnectorRow;
  readonly onDone: () => void;
  readonly isSmall?: boolean;
}) {
  const verb = started ? 'stop' : 'start';
  return (
    <div class={isSmall ? 'head-actions row-actions' : 'head-actions'}>
      <Action
        label={started ? C.stop : C.start}
        title={started ? C.stopOf(name) : C.startOf(name)}
        submit={started ? C.stop : C.start}
        kind={isSmall ? 'small' : ''}
        text={started ? C.stopTexts[kind] : C.startTexts[kind]}
        done={started ? C.stopped(name) : C.started(name)}
        run={() => request('POST', `${PATHS[kind]}/{name}/${verb}`, { params: { name } })}
        onDone={onDone}
      >
        <CopyAs
          request={{ method: 'POST', path: `${PATHS[kind]}/${encodeURIComponent(name)}/${verb}` }}
          ctl={[`${kind}s`, verb, '--', name]}
        />
      </Action>
    </div>
  );
}
