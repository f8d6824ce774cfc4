import { escapeHtml } from '../../core/template.ts'

/** The beginning of a form, with its hidden fields. A field without a value is left out. */
export function openForm(
  hidden: Readonly<Record<string, string | undefined>>,
  { action }: { readonly action?: string } = {},
): string {
  const inputs = Object.entries(hidden).flatMap(([name, value]) =>
    value === undefined ? [] : [`\n<input type="hidden" name="${name}" value="${escapeHtml(value)}">`],
  )
  return `<form method="post"${action === undefined ? '' : ` action="${escapeHtml(action)}"`}>${inputs.join('')}`
}
