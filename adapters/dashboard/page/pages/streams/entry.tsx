import { useState } from 'preact/hooks';
import { streams } from '../../app/streams.ts';
import { withoutSecrets } from '../../model/copy.ts';
import { secretsIn } from '../../model/rules.ts';
import { specsOf, type TypeDetails } from '../../model/streams.ts';
import { forAdministrators } from '../../parts/confirm.tsx';
import { type Copied, CopyAs } from '../../parts/copy.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { Field } from '../../parts/fields.tsx';
import { useLoaded } from '../../parts/loading.ts';
import { Name } from '../../parts/name.tsx';
import { notify } from '../../parts/notices.tsx';
import { InputError, Problem } from '../../parts/problem.tsx';
import { type Properties, PropertiesForm } from '../../parts/properties.tsx';
import { T } from '../../texts.ts';

const S = T.streamRules;

/** Properties of a source type that have a name: a section, or a connection. */
export interface Entry {
  readonly name: string;
  readonly type: string;
  readonly properties: Properties;
}

/** A button for a new entry, or for changes of one. */
export function EntryButton({
  label,
  entry,
  types,
  save,
  copied,
  onDone
}: {
  readonly label: string;
  /** Undefined: a new one. */
  readonly entry: Entry | undefined;
  /** The types that a new one can have. */
  readonly types: readonly string[];
  /** @returns the sentence that the service answers */
  readonly save: (entry: Entry) => Promise<unknown>;
  /** The commands that save an entry. */
  readonly copied: (entry: Entry) => Copied;
  readonly onDone: () => void;
}) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <button
        type="button"
        class={entry === undefined ? '' : 'small'}
        {...forAdministrators(entry !== undefined || types.length > 0)}
        onClick={() => setOpen(true)}
      >
        {label}
      </button>
      {isOpen && (
        <EntryDialog
          title={label}
          entry={entry}
          types={types}
          copied={copied}
          onClose={() => setOpen(false)}
          onSave={async (changed) => {
            notify(`${await save(changed)}`);
            onDone();
            setOpen(false);
          }}
        />
      )}
    </>
  );
}

function EntryDialog({
  title,
  entry,
  types,
  copied,
  onClose,
  onSave
}: {
  readonly title: string;
  readonly entry: Entry | undefined;
  readonly types: readonly string[];
  readonly copied: (entry: Entry) => Copied;
  readonly onClose: () => void;
  readonly onSave: (entry: Entry) => Promise<void>;
}) {
  const [name, setName] = useState(entry?.name ?? '');
  const [type, setType] = useState(entry?.type ?? (types.includes('mqtt') ? 'mqtt' : types[0]));
  const { value: details, error } = useLoaded(
    `source ${type}`,
    async (signal) => (await streams('GET', `/metadata/sources/${encodeURIComponent(type)}`, { signal })) as TypeDetails
  );
  const specs = specsOf(details?.properties ?? []);
  return (
    <Dialog title={title} onClose={onClose}>
      <div class="action">
        {entry === undefined ? (
          <>
            <Field field={{ name: 'name', label: T.access.name, isRequired: true }} value={name} onChange={setName} />
            <Field
              field={{ name: 'type', label: S.type, type: 'choice', choices: types.map((one) => [one, one]) }}
              value={type}
              onChange={setType}
            />
          </>
        ) : (
          <p>
            {type} <Name of={name} />
          </p>
        )}
        {error !== undefined && <Problem error={error} />}
        {details && (
          <PropertiesForm
            key={type}
            specs={specs}
            values={entry?.properties ?? {}}
            submit={T.rules.save}
            hasOthers
            onCancel={onClose}
            onSubmit={async (properties) => {
              if (name === '') throw new InputError(S.needsName);
              await onSave({ name, type, properties });
            }}
            copies={(properties) =>
              name !== '' && (
                <CopyAs
                  {...copied({ name, type, properties: withoutSecrets(properties, secretsIn(specs)) as Properties })}
                />
              )
            }
          />
        )}
      </div>
    </Dialog>
  );
}
