import { useEffect, useState } from 'preact/hooks'

/** A place in the console: `#/users/%40alice%3Ahs?tab=devices`. */
export interface Place {
  /** Decoded parts of the path. */
  readonly parts: readonly string[]
  readonly query: Readonly<Record<string, string>>
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

export function readPlace(hash: string): Place {
  const [route = '', query = ''] = hash.replace(/^#?\/?/, '').split('?')
  return {
    parts: route.split('/').filter(Boolean).map(decoded),
    query: Object.fromEntries(new URLSearchParams(query)),
  }
}

/** The address of a place. Parameters without a value are left out. */
export function to(parts: readonly string[], query: Readonly<Record<string, string | undefined>> = {}): string {
  const given = Object.entries(query).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== '',
  )
  const route = parts.map(encodeURIComponent).join('/')
  return `#/${route}${given.length === 0 ? '' : `?${new URLSearchParams(given)}`}`
}

export function go(address: string, isReplacing = false): void {
  if (isReplacing) {
    history.replaceState(undefined, '', address)
    window.dispatchEvent(new HashChangeEvent('hashchange'))
  } else location.hash = address
}

export function usePlace(): Place {
  const [place, setPlace] = useState(() => readPlace(location.hash))
  useEffect(() => {
    const moved = () => setPlace(readPlace(location.hash))
    window.addEventListener('hashchange', moved)
    return () => window.removeEventListener('hashchange', moved)
  }, [])
  return place
}
