import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'

/** A component whose code is fetched when it is first shown. */
export function later<Props extends object>(load: () => Promise<ComponentType<Props>>): ComponentType<Props> {
  let loaded: ComponentType<Props> | undefined
  return function Later(props: Props) {
    const [, setReady] = useState(loaded !== undefined)
    useEffect(() => {
      if (loaded !== undefined) return
      void load().then((component) => {
        loaded = component
        setReady(true)
      })
    }, [])
    const Component = loaded
    return Component === undefined ? <div class="chart" /> : <Component {...props} />
  }
}
