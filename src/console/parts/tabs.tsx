import { useEffect, useRef } from 'preact/hooks'

/** Links to the parts of a page; the address says which is shown. */
export function Tabs({
  label,
  tabs,
  current,
  addressOf,
}: {
  readonly label: string
  readonly tabs: readonly (readonly [id: string, title: string])[]
  readonly current: string
  readonly addressOf: (id: string) => string
}) {
  const bar = useRef<HTMLElement>(null)
  // On a phone the bar is longer than the screen.
  useEffect(() => {
    bar.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' })
  }, [current])
  return (
    <nav ref={bar} class="tabs" aria-label={label}>
      {tabs.map(([id, title]) => (
        <a key={id} href={addressOf(id)} aria-current={id === current ? 'page' : undefined}>
          {title}
        </a>
      ))}
    </nav>
  )
}
