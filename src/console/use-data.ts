import { useCallback, useEffect, useState } from 'preact/hooks'
import { call, reasonOf } from './api.ts'

export interface Loaded<T> {
  /** The last answer; of the address before while the next one is on its way. */
  readonly data: T | undefined
  readonly problem: string | undefined
  readonly isLoading: boolean
  reload(): void
}

/** The answer of an address of the admin API, asked for again every so often while the page is seen. */
export function useData<T>(url: string | undefined, everyMs?: number): Loaded<T> {
  const [state, setState] = useState<{ data?: T; problem?: string; isLoading: boolean }>({ isLoading: true })
  const [turn, setTurn] = useState(0)
  const reload = useCallback(() => setTurn((before) => before + 1), [])

  useEffect(() => {
    if (url === undefined) return
    const aborting = new AbortController()
    let timer: ReturnType<typeof setTimeout> | undefined
    setState(({ data }) => ({ ...(data !== undefined && { data }), isLoading: true }))
    async function load() {
      if (!document.hidden) {
        try {
          const data = await call<T>('GET', url as string, undefined, aborting.signal)
          setState({ data, isLoading: false })
        } catch (error) {
          if (aborting.signal.aborted) return
          setState(({ data }) => ({
            ...(data !== undefined && { data }),
            problem: reasonOf(error),
            isLoading: false,
          }))
        }
      }
      if (everyMs !== undefined && !aborting.signal.aborted) timer = setTimeout(load, everyMs)
    }
    void load()
    return () => {
      aborting.abort()
      clearTimeout(timer)
    }
  }, [url, everyMs, turn])

  return { data: state.data, problem: state.problem, isLoading: state.isLoading, reload }
}
