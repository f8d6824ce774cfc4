import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { facts } from '../facts.ts'

/** A page with its heading, which takes the focus when one comes to it: a screen reader says where one is. */
export function Page({
  title,
  words,
  actions,
  children,
}: {
  readonly title: string
  readonly words?: ComponentChildren
  readonly actions?: ComponentChildren
  readonly children: ComponentChildren
}) {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    document.title = `${title} · ${facts.server_name}`
    if (document.activeElement?.closest('dialog, form') == null) heading.current?.focus({ preventScroll: true })
    window.scrollTo(0, 0)
  }, [title])
  return (
    <>
      <header class="page">
        <div>
          <h1 ref={heading} tabIndex={-1}>
            <bdi>{title}</bdi>
          </h1>
          {words !== undefined && <p class="soft">{words}</p>}
        </div>
        {actions !== undefined && <div class="actions">{actions}</div>}
      </header>
      {children}
    </>
  )
}

export function Card({
  title,
  actions,
  children,
}: {
  readonly title: string
  readonly actions?: ComponentChildren
  readonly children: ComponentChildren
}) {
  return (
    <section class="card">
      <div class="card-head">
        <h2>{title}</h2>
        {actions}
      </div>
      {children}
    </section>
  )
}

export function Facts({ list }: { readonly list: readonly (readonly [name: string, value: ComponentChildren])[] }) {
  return (
    <dl>
      {list.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value ?? <span class="soft">–</span>}</dd>
        </div>
      ))}
    </dl>
  )
}
