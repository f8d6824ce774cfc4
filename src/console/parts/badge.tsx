import type { ComponentChildren } from 'preact'

export type Tone = 'good' | 'warn' | 'bad' | 'plain'

export function Badge({ tone = 'plain', children }: { readonly tone?: Tone; readonly children: ComponentChildren }) {
  return <span class={`badge ${tone}`}>{children}</span>
}
