import { RequestError, request } from '../../app/requests.ts';
import { HIDDEN } from '../../model/copy.ts';
import { Action } from '../../parts/confirm.tsx';
import { CopyAs } from '../../parts/copy.tsx';
import { T } from '../../texts.ts';
import { type ConnectorRow, targetOf } from './rows.tsx';

const C = T.connectors;

/** Find out whether the server of a webhook can be reached. The interface tests it as the target of a rule, so nothing is sent. */
export function Test({ row }: { readonly row: ConnectorRow }) {
  const url = targetOf(row);
  const body = { type: 'web_hook', config: { url: (url ?? '').replaceAll(HIDDEN, '') } };
  return (
    <Action
      label={C.test}
      title={C.testOf(row.name)}
      text={C.testText}
      done={C.reachable}
      prevented={url === undefined ? C.ofAppAbout : undefined}
      run={() => request('POST', '/resources', { query: { test: true }, body }).catch(withAdvice)}
    >
      <CopyAs request={{ method: 'POST', path: '/resources', query: { test: true }, body }} />
    </Action>
  );
}

/** Say what an app has to do if it does not have the type of the target. The status of a failed test is 500, but the broker works. */
function withAdvice(error: unknown): never {
  if (!(error instanceof RequestError) || (error.status !== 500 && error.status !== 400)) throw error;
  const message = /web_hook Not Found/.test(error.message) ? C.noTest : error.message;
  throw new RequestError(message, 400, error.code, error.body);
}
