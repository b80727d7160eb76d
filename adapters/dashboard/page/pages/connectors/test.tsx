import { useState } from 'preact/hooks';
import { request } from '../../app/requests.ts';
import { durationText } from '../../model/format.ts';
import { forAdministrators } from '../../parts/confirm.tsx';
import { CopyAs } from '../../parts/copy.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { Badge } from '../../parts/facts.tsx';
import { Problem } from '../../parts/problem.tsx';
import { T } from '../../texts.ts';

const C = T.connectors;

/** The result of a test event. */
interface Result {
  readonly delivered: boolean;
  /** The HTTP status of the answer; absent: there was none. */
  readonly status?: number;
  readonly time_ms: number;
  readonly error?: { readonly code: string; readonly message: string };
}

/** Send a test event to the server of a webhook, and show the answer. */
export function Test({ name }: { readonly name: string }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <button type="button" {...forAdministrators()} onClick={() => setOpen(true)}>
        {C.test}
      </button>
      {isOpen && <TestDialog name={name} onClose={() => setOpen(false)} />}
    </>
  );
}

function TestDialog({ name, onClose }: { readonly name: string; readonly onClose: () => void }) {
  const [result, setResult] = useState<Result>();
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const send = async () => {
    setBusy(true);
    setResult(undefined);
    setError(undefined);
    try {
      setResult((await request('POST', '/x/webhooks/{name}/test', { params: { name } })).data as Result);
    } catch (thrown) {
      setError(thrown);
    }
    setBusy(false);
  };
  return (
    <Dialog title={C.testOf(name)} onClose={onClose}>
      <div class="action">
        <p>{C.testText}</p>
        <CopyAs
          request={{ method: 'POST', path: `/x/webhooks/${encodeURIComponent(name)}/test` }}
          ctl={['webhooks', 'test', '--', name]}
        />
        <div role="status">{isBusy ? <p class="aside">{C.testing}</p> : result && <Outcome result={result} />}</div>
        {error !== undefined && <Problem error={error} />}
        <div class="form-buttons">
          <button type="button" class="primary" disabled={isBusy} onClick={() => void send()}>
            {result === undefined ? C.sendTest : C.sendAgain}
          </button>
          <button type="button" onClick={onClose}>
            {T.form.close}
          </button>
        </div>
      </div>
    </Dialog>
  );
}

function Outcome({ result: { delivered, status, time_ms, error } }: { readonly result: Result }) {
  return (
    <>
      <p>
        <Badge kind={delivered ? 'good' : 'bad'}>{delivered ? C.accepted : C.notAccepted}</Badge>{' '}
        <span class="tabular">{C.answered(status, durationText(time_ms))}</span>
      </p>
      {error && <p class="problem-message">{error.message}</p>}
    </>
  );
}
