import type { Dispatcher } from 'undici'

/** The requests to one place that have no connection yet. */
export interface WaitingRequests {
  readonly count: number
  /** For `compose` of a dispatcher. */
  readonly interceptor: Dispatcher.DispatcherComposeInterceptor
}

/**
 * undici replaces the connection of an aborted request by a new one (nodejs/undici#5845), and keeps it for as long as the other side likes.
 * The number of waiting requests shows which connections nobody needs.
 */
export function countWaitingRequests(): WaitingRequests {
  let count = 0
  return {
    get count() {
      return count
    },
    interceptor: (dispatch) => (options, handler) => {
      let isWaiting = true
      count++
      const isTaken = () => {
        if (isWaiting) count--
        isWaiting = false
      }
      return dispatch(options, passingOn(handler, isTaken))
    },
  }
}

function passingOn(handler: Dispatcher.DispatchHandler, isTaken: () => void): Dispatcher.DispatchHandler {
  return {
    onRequestStart(...told) {
      isTaken()
      handler.onRequestStart?.(...told)
    },
    onResponseStart: (...told) => handler.onResponseStart?.(...told),
    onResponseData: (...told) => handler.onResponseData?.(...told),
    onResponseEnd: (...told) => handler.onResponseEnd?.(...told),
    onResponseError(...told) {
      isTaken()
      handler.onResponseError?.(...told)
    },
  }
}
