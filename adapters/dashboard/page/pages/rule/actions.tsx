import { useState } from 'preact/hooks';
import { get } from '../../app/requests.ts';
import type { ParamSpec } from '../../model/rules.ts';
import { forAdministrators } from '../../parts/confirm.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { Pairs } from '../../parts/facts.tsx';
import { Field } from '../../parts/fields.tsx';
import { useLoaded } from '../../parts/loading.ts';
import { PropertiesForm } from '../../parts/properties.tsx';
import { T } from '../../texts.ts';

const R = T.rules;

/** An action of a rule, with changes that are not saved yet. */
export interface ActionDraft {
  readonly name: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly fallbacks: readonly Readonly<Record<string, unknown>>[];
}

/** The actions of a rule, which process its outputs. */
export function Actions({
  actions,
  onChange
}: {
  readonly actions: readonly ActionDraft[];
  readonly onChange: (actions: readonly ActionDraft[]) => void;
}) {
  const [edited, setEdited] = useState<number>();
  return (
    <div class="rule-actions">
      <h3>{R.actions}</h3>
      {actions.length === 0 && <p class="aside">{R.noActions}</p>}
      <ul>
        {actions.map(({ name, params }, index) => (
          <li key={index}>
            <b>{name}</b> <Pairs of={params} />
            <button type="button" class="small" {...forAdministrators()} onClick={() => setEdited(index)}>
              {R.change}
            </button>
            <button
              type="button"
              class="small"
              {...forAdministrators()}
              onClick={() => onChange(actions.filter((_, at) => at !== index))}
            >
              {R.removeAction}
            </button>
          </li>
        ))}
      </ul>
      <button type="button" {...forAdministrators()} onClick={() => setEdited(actions.length)}>
        {R.addAction}
      </button>
      {edited !== undefined && (
        <ActionDialog
          action={actions[edited]}
          onClose={() => setEdited(undefined)}
          onSave={(action) => {
            onChange(
              edited === actions.length
                ? [...actions, action]
                : actions.map((one, at) => (at === edited ? action : one))
            );
            setEdited(undefined);
          }}
        />
      )}
    </div>
  );
}

function ActionDialog({
  action,
  onSave,
  onClose
}: {
  readonly action: ActionDraft | undefined;
  readonly onSave: (action: ActionDraft) => void;
  readonly onClose: () => void;
}) {
  const { value } = useLoaded('actions', (signal) => get('/actions', { signal }));
  const [name, setName] = useState(action?.name ?? 'republish');
  const type = value?.find((one) => one.name === name);
  const specs = Object.entries((type?.params ?? {}) as Readonly<Record<string, ParamSpec>>).sort(
    ([, a], [, b]) => (a.order ?? 99) - (b.order ?? 99)
  );
  return (
    <Dialog title={action === undefined ? R.addAction : R.changeAction} onClose={onClose}>
      <div class="action">
        <Field
          field={{
            name: 'name',
            label: R.action,
            type: 'choice',
            choices: (value ?? []).map((one) => [one.name, one.title.en || one.name])
          }}
          value={name}
          onChange={setName}
        />
        {type && <p class="aside">{type.description.en}</p>}
        {type && (
          <PropertiesForm
            key={name}
            specs={specs}
            values={action?.name === name ? action.params : {}}
            submit={R.take}
            onCancel={onClose}
            onSubmit={async (params) =>
              onSave({ name, params, fallbacks: action?.name === name ? action.fallbacks : [] })
            }
          />
        )}
      </div>
    </Dialog>
  );
}
