import { escapeHtml } from '../../core/template.ts'

/** The beginning of a form, with its hidden fields. A field without a value is left out. `isUpload`: whether it sends a file. */
export function openForm(
  hidden: Readonly<Record<string, string | undefined>>,
  { action, isUpload }: { readonly action?: string; readonly isUpload?: boolean } = {},
): string {
  const inputs = Object.entries(hidden).flatMap(([name, value]) =>
    value === undefined ? [] : [`\n<input type="hidden" name="${name}" value="${escapeHtml(value)}">`],
  )
  const encoding = isUpload ? ' enctype="multipart/form-data"' : ''
  return `<form method="post"${encoding}${action === undefined ? '' : ` action="${escapeHtml(action)}"`}>${inputs.join('')}`
}
