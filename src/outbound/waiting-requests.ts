import type { Dispatcher } from 'undici'

/** The requests to one place that no connection has taken up yet. */
export interface WaitingRequests {
  readonly count: number
  /** For `compose` of a dispatcher. */
  readonly interceptor: Dispatcher.DispatcherComposeInterceptor
}

/**
 * undici makes a new connection for a request that was given up, in place of the one that this ended (nodejs/undici#5845), and keeps
 * it for as long as the other side likes. Who counts the requests that wait knows which connections are for nobody.
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
