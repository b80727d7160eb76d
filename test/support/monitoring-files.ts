import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';

const folder = join(import.meta.dirname, '../../examples/deploy');

/** The rules of alerts that the package has. */
export const RULES_FILE = join(folder, 'prometheus-rules.yml');

interface Panel {
  readonly title: string;
  readonly type: string;
  readonly targets?: readonly { readonly expr: string }[];
}

interface Dashboard {
  readonly panels: readonly Panel[];
  readonly templating: {
    readonly list: readonly { readonly name: string; readonly query: string | { query: string } }[];
  };
}

interface Rules {
  readonly groups: readonly { readonly rules: readonly { readonly alert: string; readonly expr: string }[] }[];
}

/** An expression with the place where it stands. */
export interface Expression {
  readonly place: string;
  readonly expr: string;
}

/** The dashboard for Grafana that the package has. */
export const dashboard = JSON.parse(readFileSync(join(folder, 'grafana-dashboard.json'), 'utf8')) as Dashboard;

/** The expressions of the dashboard, with its variables. */
export function dashboardExpressions(): Expression[] {
  return dashboard.panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ place: title, expr })));
}

/** The expressions of the alerts. */
export function alertExpressions(): Expression[] {
  const { groups } = parse(readFileSync(RULES_FILE, 'utf8')) as Rules;
  return groups.flatMap(({ rules }) => rules.map(({ alert, expr }) => ({ place: alert, expr })));
}

/** The expression of an alert without its threshold. @throws Error if it has none */
export function withoutThreshold({ place, expr }: Expression): string {
  const [, left] = /^(.*) (?:[<>]=?|[!=]=) [0-9.]+$/s.exec(expr) ?? [];
  if (left === undefined) throw new Error(`the alert ${place} does not end with a threshold: ${expr}`);
  return left;
}

/** The names of metrics in an expression: those of this project and of the process. */
export function metricNames(expr: string): string[] {
  const plain = expr.replace(/"(?:[^"\\]|\\.)*"/g, '""');
  return [...plain.matchAll(/\b(?:embermq|process|nodejs)_[a-z0-9_]+/g)].map(([name]) => name);
}
