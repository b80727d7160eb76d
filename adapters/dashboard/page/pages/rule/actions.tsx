import { useState } from 'preact/hooks';
import type { DataOf } from '../../../../management/client/index.ts';
import { get } from '../../app/requests.ts';
import { missingIn, outputsOf, type ParamSpec, wildcardTopicIn } from '../../model/rules.ts';
import { forAdministrators } from '../../parts/confirm.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { Pairs } from '../../parts/facts.tsx';
import { Field } from '../../parts/fields.tsx';
import { useLoaded } from '../../parts/loading.ts';
import { PropertiesForm } from '../../parts/properties.tsx';
import { T } from '../../texts.ts';
import { Edit } from './resources.tsx';

const R = T.rules;
/** The parameter that names the resource of an action. */
const RESOURCE = '$resource';

/** A type of actions, with its parameters. */
type ActionType = DataOf<'hosted', 'GET', '/actions'>[number];

/** An action of a rule, with changes that are not saved yet. */
export interface ActionDraft {
  readonly name: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly fallbacks: readonly Readonly<Record<string, unknown>>[];
}

/** The actions of a rule, which process its outputs. */
export function Actions({
  actions,
  statement,
  onChange
}: {
  readonly actions: readonly ActionDraft[];
  readonly statement: string;
  readonly onChange: (actions: readonly ActionDraft[]) => void;
}) {
  const [edited, setEdited] = useState<number>();
  const { value: types, isLoading } = useLoaded('actions', (signal) => get('/actions', { signal }));
  const labelsOf = (name: string) => {
    const params = (types?.find((one) => one.name === name)?.params ?? {}) as Readonly<Record<string, ParamSpec>>;
    return Object.fromEntries(Object.entries(params).map(([param, { title }]) => [param, title?.en || param]));
  };
  return (
    <div class="rule-actions">
      <h3>{R.actions}</h3>
      {actions.length === 0 && <p class="aside">{R.noActions}</p>}
      <ul>
        {actions.map(({ name, params }, index) => (
          <li key={index}>
            <b>{name}</b> {!isLoading && <Pairs of={params} labels={labelsOf(name)} />}
            <Warnings action={{ name, params }} statement={statement} />
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
          types={types ?? []}
          statement={statement}
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

/** The parameters of an action type in the order of the form: those that are required first, without those that permit one value only. */
function specsOf(params: Readonly<Record<string, ParamSpec>>, resources: readonly string[]): [string, ParamSpec][] {
  return Object.entries(params)
    .filter(([, spec]) => spec.enum === undefined || spec.enum.some((value) => value !== '' && value !== 'none'))
    .map(([name, spec]): [string, ParamSpec] => [name, name === RESOURCE ? { ...spec, enum: resources } : spec])
    .sort(
      ([, a], [, b]) => Number(b.required === true) - Number(a.required === true) || (a.order ?? 99) - (b.order ?? 99)
    );
}

/** Names in placeholders that the statement does not output, and a topic that cannot be published to. */
function Warnings({
  action,
  statement
}: {
  readonly action: Pick<ActionDraft, 'name' | 'params'>;
  readonly statement: string;
}) {
  const missing = missingIn(action.params, outputsOf(statement));
  const topic = wildcardTopicIn(action);
  return (
    <>
      {topic !== undefined && <p class="warning">{R.wildcard(topic)}</p>}
      {missing.length > 0 && <p class="warning">{R.missing(missing.join(', '))}</p>}
    </>
  );
}

function ActionDialog({
  action,
  types,
  statement,
  onSave,
  onClose
}: {
  readonly action: ActionDraft | undefined;
  readonly types: readonly ActionType[];
  readonly statement: string;
  readonly onSave: (action: ActionDraft) => void;
  readonly onClose: () => void;
}) {
  const [name, setName] = useState(action?.name ?? 'republish');
  const type = types.find((one) => one.name === name);
  const present = action?.name === name ? action : undefined;
  const needsResource = type?.params[RESOURCE] !== undefined;
  const resources = useResources(type?.types ?? [], present?.params[RESOURCE]);
  return (
    <Dialog title={action === undefined ? R.addAction : R.changeAction} onClose={onClose}>
      <div class="action">
        <Field
          field={{
            name: 'name',
            label: R.action,
            type: 'choice',
            choices: types.map((one) => [one.name, one.title.en || one.name])
          }}
          value={name}
          onChange={setName}
        />
        {type && (
          <p class="aside">
            {type.description.en} {needsResource ? R.usesResource : type.app === 'streams' && R.usesNone}
          </p>
        )}
        {needsResource && (
          <div class="form-buttons">
            <Edit resource={undefined} types={resources.types} onDone={resources.reload} />
          </div>
        )}
        {type && (!needsResource || resources.ids) && (
          <PropertiesForm
            key={name}
            specs={specsOf(type.params as Readonly<Record<string, ParamSpec>>, resources.ids ?? [])}
            values={present?.params ?? {}}
            hidesRare
            submit={R.take}
            onCancel={onClose}
            onSubmit={async (params) => onSave({ name, params, fallbacks: present?.fallbacks ?? [] })}
            copies={(params) => <Warnings action={{ name, params }} statement={statement} />}
          />
        )}
      </div>
    </Dialog>
  );
}

/** The resources that an action can use, and their types. @param present the one that it uses now */
function useResources(types: readonly string[], present: unknown) {
  const known = useLoaded('resource types', (signal) => get('/resource_types', { signal })).value ?? [];
  const { value, reload } = useLoaded('resources of actions', (signal) => get('/resources', { signal }));
  const ids = value?.filter(({ type }) => types.includes(type)).map(({ id }) => id);
  const isGone = typeof present === 'string' && ids !== undefined && !ids.includes(present);
  return {
    ids: isGone ? [present, ...ids] : ids,
    types: known.filter(({ name }) => types.includes(name)),
    reload
  };
}
