import { useState } from 'preact/hooks';
import { streams } from '../../app/streams.ts';
import { sinkOf, specsOf, type TypeDetails, type TypeRow } from '../../model/streams.ts';
import { forAdministrators } from '../../parts/confirm.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { Pairs } from '../../parts/facts.tsx';
import { Field } from '../../parts/fields.tsx';
import { useLoaded } from '../../parts/loading.ts';
import { Problem } from '../../parts/problem.tsx';
import { type Properties, PropertiesForm } from '../../parts/properties.tsx';
import { T } from '../../texts.ts';

const S = T.streamRules;

/** An action of a stream rule: its type, with the properties of the sink. */
export type Sink = Readonly<Record<string, unknown>>;

/** The sinks of a rule, which receive its outputs. */
export function Sinks({
  sinks,
  onChange
}: {
  readonly sinks: readonly Sink[];
  readonly onChange: (sinks: readonly Sink[]) => void;
}) {
  const [edited, setEdited] = useState<number>();
  return (
    <div class="rule-actions">
      <h3>{S.sinks}</h3>
      {sinks.length === 0 && <p class="aside">{S.needsSink}</p>}
      <ul>
        {sinks.map((sink, index) => {
          const [type, properties] = sinkOf(sink);
          return (
            <li key={index}>
              <b>{type}</b> <Pairs of={properties} />
              <button type="button" class="small" {...forAdministrators()} onClick={() => setEdited(index)}>
                {T.rules.change}
              </button>
              <button
                type="button"
                class="small"
                {...forAdministrators()}
                onClick={() => onChange(sinks.filter((_, at) => at !== index))}
              >
                {T.rules.removeAction}
              </button>
            </li>
          );
        })}
      </ul>
      <button type="button" {...forAdministrators()} onClick={() => setEdited(sinks.length)}>
        {S.addSink}
      </button>
      {edited !== undefined && (
        <SinkDialog
          sink={sinks[edited]}
          onClose={() => setEdited(undefined)}
          onSave={(sink) => {
            onChange(edited === sinks.length ? [...sinks, sink] : sinks.map((one, at) => (at === edited ? sink : one)));
            setEdited(undefined);
          }}
        />
      )}
    </div>
  );
}

function SinkDialog({
  sink,
  onSave,
  onClose
}: {
  readonly sink: Sink | undefined;
  readonly onSave: (sink: Sink) => void;
  readonly onClose: () => void;
}) {
  const [before, properties] = sinkOf(sink ?? {});
  const [type, setType] = useState(before || 'mqtt');
  const types = useLoaded(
    'sink types',
    async (signal) => (await streams('GET', '/metadata/sinks', { signal })) as readonly TypeRow[]
  );
  const { value: details, error } = useLoaded(
    `sink ${type}`,
    async (signal) => (await streams('GET', `/metadata/sinks/${encodeURIComponent(type)}`, { signal })) as TypeDetails
  );
  const names = new Set([...(types.value ?? []).map(({ name }) => name), type]);
  return (
    <Dialog title={sink === undefined ? S.addSink : S.changeSink} onClose={onClose}>
      <div class="action">
        <Field
          field={{ name: 'type', label: S.type, type: 'choice', choices: [...names].map((name) => [name, name]) }}
          value={type}
          onChange={setType}
        />
        {details && <p class="aside">{details.about.description.en_US}</p>}
        {error !== undefined && <Problem error={error} />}
        {details && (
          <PropertiesForm
            key={type}
            specs={specsOf(details.properties)}
            values={type === before ? (properties as Properties) : {}}
            submit={T.rules.take}
            hasOthers
            onCancel={onClose}
            onSubmit={async (given) => onSave({ ...restOf(sink, before), [type]: given })}
          />
        )}
      </div>
    </Dialog>
  );
}

/** Further members of an action that is changed. */
function restOf(sink: Sink = {}, type: string): Sink {
  return Object.fromEntries(Object.entries(sink).filter(([name]) => name !== type));
}
