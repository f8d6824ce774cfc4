import type { Dispatcher } from 'undici'

/** The requests to one place that have no connection yet. */
export interface WaitingRequests {
  readonly count: number
  /** One waits. */
  began(): void
  /** One has a connection, or will have none. */
  ended(): void
  /** For `compose` of a dispatcher: counts what is sent by way of it. */
  readonly interceptor: Dispatcher.DispatcherComposeInterceptor
}

/**
 * undici replaces the connection of an aborted request by a new one (nodejs/undici#5845), and keeps it for as long as the other side likes.
 * The number of waiting requests shows which connections nobody needs.
 */
export function countWaitingRequests(): WaitingRequests {
  let count = 0
  const began = () => void count++
  const ended = () => void count--
  return {
    get count() {
      return count
    },
    began,
    ended,
    interceptor: (dispatch) => (options, handler) => {
      let isWaiting = true
      began()
      const isTaken = () => {
        if (isWaiting) ended()
        isWaiting = false
      }
      return dispatch(options, passingOn(handler, isTaken))
    },
  }
}

function passingOn(handler: Dispatcher.DispatchHandler, isTaken: () => void): Dispatcher.DispatchHandler {
  return {
    onRequestStart(...args) {
      isTaken()
      handler.onRequestStart?.(...args)
    },
    onResponseStart: (...args) => handler.onResponseStart?.(...args),
    onResponseData: (...args) => handler.onResponseData?.(...args),
    onResponseEnd: (...args) => handler.onResponseEnd?.(...args),
    onResponseError(...args) {
      isTaken()
      handler.onResponseError?.(...args)
    },
  }
}
