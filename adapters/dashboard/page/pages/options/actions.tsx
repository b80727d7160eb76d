import { useState } from 'preact/hooks';
import { put, request } from '../../app/requests.ts';
import { plainText } from '../../model/format.ts';
import { type OptionRow, placesOf } from '../../model/options.ts';
import { Action } from '../../parts/confirm.tsx';
import { CopyAs, CopyButton } from '../../parts/copy.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { Facts } from '../../parts/facts.tsx';
import type { FieldRow } from '../../parts/fields.tsx';
import { T } from '../../texts.ts';
import { valueText } from './words.ts';

const O = T.options;
/** Options that belong to the broker, for the interface, and not to a plugin. */
const APP = 'emqx';

/** Change an option, or reset it; for one that is read at the start, the places in which it is set. */
export function OptionActions({ row, onDone }: { readonly row: OptionRow; readonly onDone: () => void }) {
  if (row.takes_effect === 'restart') return <AtStart row={row} />;
  const { key, source } = row;
  return (
    <div class="head-actions row-actions">
      <Change row={row} onDone={onDone} />
      {source === 'override' && (
        <Action
          label={O.reset}
          title={O.resetOf(key)}
          kind="small"
          text={O.resetText}
          done={O.wasReset(key)}
          run={() => request('DELETE', '/x/options/{key}', { params: { key } })}
          onDone={onDone}
        >
          <CopyAs
            request={{ method: 'DELETE', path: `/x/options/${encodeURIComponent(key)}` }}
            ctl={['config', 'reset', key]}
          />
        </Action>
      )}
    </div>
  );
}

function Change({ row, onDone }: { readonly row: OptionRow; readonly onDone: () => void }) {
  const { key, about, value, takes_effect } = row;
  return (
    <Action
      label={O.change}
      title={O.changeOf(key)}
      submit={O.save}
      kind="small"
      text={
        <>
          {plainText(about)} {O.whenAbouts[takes_effect]} {O.byDefault(valueText(row, row.default))}
        </>
      }
      fields={[fieldOf(row)]}
      initial={{ value: `${value}` }}
      done={O.changed(key)}
      run={({ value: given = '' }) => put('/configs/{app}', { params: { app: APP }, body: { key, value: given } })}
      onDone={onDone}
    >
      {({ value: given = '' }) => (
        <CopyAs
          request={{ method: 'PUT', path: `/configs/${APP}`, body: { key, value: given } }}
          ctl={given.startsWith('-') ? ['config', 'set', '--', key, given] : ['config', 'set', key, given]}
        />
      )}
    </Action>
  );
}

/** The input for the value of an option. */
function fieldOf({ kind, choices, value, default: byDefault }: OptionRow): FieldRow {
  const field = { name: 'value', label: O.value };
  const mayBeNone = value === '' || byDefault === '';
  const none = mayBeNone ? [['', O.none] as const] : [];
  if (kind === 'boolean')
    return {
      ...field,
      type: 'choice',
      choices: [...none, ['true', O.on], ['false', O.off]]
    };
  if (choices !== undefined)
    return { ...field, type: 'choice', choices: [...none, ...choices.map((one) => [one, one] as const)] };
  if (kind === 'object') return { ...field, type: 'lines', help: O.helps.object };
  const help = (O.helps as Readonly<Record<string, string>>)[kind];
  return { ...field, help: [help, mayBeNone ? O.emptyIsNone : undefined].filter(Boolean).join(' ') };
}

/** The places in which an option is set that is only read at the start. */
function AtStart({ row: { key, name, about, source, origin } }: { readonly row: OptionRow }) {
  const [isOpen, setOpen] = useState(false);
  const places = placesOf(name);
  return (
    <div class="row-actions head-actions">
      <button type="button" class="small quiet" onClick={() => setOpen(true)}>
        {O.how}
      </button>
      {isOpen && (
        <Dialog title={O.howOf(key)} onClose={() => setOpen(false)}>
          <div class="action">
            <p>
              {plainText(about)} {O.whenAbouts.restart}
            </p>
            {source === 'option' && origin !== undefined && <p>{O.nowIn(origin)}</p>}
            <Facts
              rows={(['flag', 'variable', 'file', 'app'] as const).map((place) => [
                O.places[place],
                <span key={place}>
                  <code>{places[place]}</code> <CopyButton text={places[place]} />
                </span>
              ])}
            />
          </div>
        </Dialog>
      )}
    </div>
  );
}
