import { useState } from 'preact/hooks';
import type { DataOf } from '../../../../management/client/index.ts';
import { get, remove, request } from '../../app/requests.ts';
import { withoutSecrets } from '../../model/copy.ts';
import { countText } from '../../model/format.ts';
import { type ParamSpec, secretsIn } from '../../model/rules.ts';
import { Action, forAdministrators } from '../../parts/confirm.tsx';
import { CopyAs } from '../../parts/copy.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { Badge } from '../../parts/facts.tsx';
import { Field } from '../../parts/fields.tsx';
import { useLoaded } from '../../parts/loading.ts';
import { Name } from '../../parts/name.tsx';
import { notify } from '../../parts/notices.tsx';
import { type Properties, PropertiesForm } from '../../parts/properties.tsx';
import { Table } from '../../parts/table.tsx';
import { T } from '../../texts.ts';

const R = T.rules;
const EVERY_MS = 5_000;
type Resource = DataOf<'hosted', 'GET', '/resources'>[number];
type ResourceType = DataOf<'hosted', 'GET', '/resource_types'>[number];

/** The resources: servers that actions of rules send to. */
export function Resources() {
  const types = useLoaded('resource types', (signal) => get('/resource_types', { signal })).value;
  const { value, error, reload } = useLoaded<readonly Resource[]>(
    'resources',
    (signal, isBackground) => get('/resources', { signal, isBackground }) as Promise<Resource[]>,
    { everyMs: EVERY_MS }
  );
  return (
    <section class="stack">
      <div class="sample-head">
        <p class="aside">{R.resourcesAbout}</p>
        <Edit resource={undefined} types={types ?? []} onDone={reload} />
      </div>
      <Table
        caption={R.resources}
        rows={value}
        error={error}
        onRetry={reload}
        keyOf={({ id }) => id}
        empty={types?.length === 0 ? R.noResourceTypes : R.noResources}
        columns={[
          {
            head: R.id,
            cell: ({ id, description }) => (
              <>
                <Name of={id} />
                {description !== '' && (
                  <div class="aside">
                    <Name of={description} max={80} />
                  </div>
                )}
              </>
            )
          },
          { head: R.type, isMinor: true, cell: ({ type }) => type },
          {
            head: R.state,
            cell: ({ is_alive }) => (
              <Badge kind={is_alive ? 'good' : 'bad'}>{is_alive ? R.reachable : R.unreachable}</Badge>
            )
          },
          { head: R.waits, isNumber: true, isMinor: true, cell: ({ waiting }) => countText(waiting) },
          {
            head: R.lastError,
            isMinor: true,
            isWide: true,
            cell: ({ last_error }) => last_error && <Name of={last_error} max={120} />
          },
          {
            head: '',
            cell: (resource) => (
              <span class="section-actions">
                <Check id={resource.id} onDone={reload} />
                <Edit resource={resource} types={types ?? []} onDone={reload} />
                <Remove id={resource.id} onDone={reload} />
              </span>
            )
          }
        ]}
      />
    </section>
  );
}

interface ButtonProps {
  readonly id: string;
  readonly onDone: () => void;
}

function Check({ id, onDone }: ButtonProps) {
  return (
    <Action
      label={R.check}
      text={R.checkText}
      kind="small"
      done={R.checked}
      run={() => request('POST', '/resources/{id}', { params: { id } })}
      onDone={onDone}
    >
      <CopyAs
        request={{ method: 'POST', path: `/resources/${encodeURIComponent(id)}` }}
        ctl={['resources', 'start', '--', id]}
      />
    </Action>
  );
}

function Remove({ id, onDone }: ButtonProps) {
  return (
    <Action
      label={R.remove}
      title={R.removeResource}
      of={id}
      text={R.removeResourceText}
      kind="small"
      isDangerous
      done={R.resourceRemoved}
      run={() => remove('/resources/{id}', { params: { id } })}
      onDone={onDone}
    >
      <CopyAs
        request={{ method: 'DELETE', path: `/resources/${encodeURIComponent(id)}` }}
        ctl={['resources', 'remove', '--', id]}
      />
    </Action>
  );
}

interface EditProps {
  /** Undefined: a new one. */
  readonly resource: Resource | undefined;
  readonly types: readonly ResourceType[];
  readonly onDone: () => void;
}

/** A button that opens the form of a resource. */
export function Edit(props: EditProps) {
  const [isOpen, setOpen] = useState(false);
  const { resource, types } = props;
  return (
    <>
      <button
        type="button"
        class={resource === undefined ? '' : 'small'}
        {...forAdministrators(types.length > 0)}
        onClick={() => setOpen(true)}
      >
        {resource === undefined ? R.addResource : R.change}
      </button>
      {isOpen && <EditDialog {...props} onClose={() => setOpen(false)} />}
    </>
  );
}

function EditDialog({ resource, types, onDone, onClose }: EditProps & { readonly onClose: () => void }) {
  const [id, setId] = useState('');
  const [name, setName] = useState(resource?.type ?? types[0].name);
  const [description, setDescription] = useState(resource?.description ?? '');
  const [isTried, setTried] = useState('true');
  const type = types.find((one) => one.name === name);
  const specs = Object.entries((type?.params ?? {}) as Readonly<Record<string, ParamSpec>>).sort(
    ([, a], [, b]) => (a.order ?? 99) - (b.order ?? 99)
  );
  const bodyOf = (config: unknown) =>
    resource === undefined ? { type: name, config, description, ...(id !== '' && { id }) } : { config, description };
  const save = async (config: Properties) => {
    const body = bodyOf(config);
    if (resource !== undefined) await request('PUT', '/resources/{id}', { params: { id: resource.id }, body });
    else {
      if (isTried === 'true') await request('POST', '/resources', { query: { test: true }, body });
      await request('POST', '/resources', { body });
    }
    notify(R.resourceSaved);
    onDone();
    onClose();
  };
  return (
    <Dialog title={resource === undefined ? R.addResource : R.changeResource} onClose={onClose}>
      <div class="action">
        {resource === undefined ? (
          <>
            <Field field={{ name: 'id', label: R.id, help: R.idHelp }} value={id} onChange={setId} />
            <Field
              field={{
                name: 'type',
                label: R.type,
                type: 'choice',
                choices: types.map((one) => [one.name, one.title.en || one.name])
              }}
              value={name}
              onChange={setName}
            />
            <Field field={{ name: 'test', label: R.tryFirst, type: 'flag' }} value={isTried} onChange={setTried} />
          </>
        ) : (
          <p>
            {name} <Name of={resource.id} />
          </p>
        )}
        {type && <p class="aside">{type.description.en}</p>}
        <Field field={{ name: 'description', label: R.description }} value={description} onChange={setDescription} />
        {type && (
          <PropertiesForm
            key={name}
            specs={specs}
            values={(resource?.config ?? {}) as Properties}
            submit={R.save}
            onCancel={onClose}
            onSubmit={save}
            copies={(config) => (
              <ResourceCopies id={resource?.id} body={bodyOf(withoutSecrets(config, secretsIn(specs)))} />
            )}
          />
        )}
      </div>
    </Dialog>
  );
}

/** The commands that save a resource. @param id undefined: a new one */
function ResourceCopies({ id, body }: { readonly id: string | undefined; readonly body: object }) {
  const input = JSON.stringify(body);
  if (id === undefined)
    return (
      <CopyAs request={{ method: 'POST', path: '/resources', body }} ctl={['resources', 'add', '-']} input={input} />
    );
  const path = `/resources/${encodeURIComponent(id)}`;
  return <CopyAs request={{ method: 'PUT', path, body }} ctl={['resources', 'change', '--', id, '-']} input={input} />;
}
