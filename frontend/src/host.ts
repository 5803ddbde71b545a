// What Airflow's UI shares with the bundles of plugins: its own React and its own router, never a second copy.
import type * as ReactModule from "react";

interface Location {
  pathname: string;
  search: string;
}

interface Host {
  React: typeof ReactModule;
  ReactRouterDOM?: {
    useLocation: () => Location;
    useNavigate: () => (to: string, options?: { replace?: boolean }) => void;
  };
}

const host = globalThis as unknown as Host;

export const React = host.React;
export const { useEffect, useId, useMemo, useRef, useState } = host.React;

/** Where Airflow is mounted, with a slash at its end: the API server may be behind a path. */
const basePath = new URL(document.baseURI).pathname.replace(/[^/]*$/, "");

/** The address of something below Airflow, for links and requests. */
export const addressOf = (path: string): string => basePath + path.replace(/^\//, "");

const useHostLocation = (): Location => host.ReactRouterDOM!.useLocation();
const useHostNavigate = () => host.ReactRouterDOM!.useNavigate();

const useWindowLocation = (): Location => {
  const [, moved] = useState(0);
  useEffect(() => {
    const listener = () => moved((count) => count + 1);
    window.addEventListener("popstate", listener);
    return () => window.removeEventListener("popstate", listener);
  }, []);
  return { pathname: window.location.pathname.slice(basePath.length - 1), search: window.location.search };
};
const useWindowNavigate =
  () =>
  (to: string, options?: { replace?: boolean }): void => {
    if (options?.replace) {
      window.history.replaceState(null, "", addressOf(to));
      window.dispatchEvent(new PopStateEvent("popstate"));
    } else {
      window.location.assign(addressOf(to));
    }
  };

// Of one host it is always the same of the two, so the rules of hooks are kept.
export const useLocation = host.ReactRouterDOM ? useHostLocation : useWindowLocation;
/** Goes to an address below Airflow: "/plugin/flink?…". */
export const useNavigate = host.ReactRouterDOM ? useHostNavigate : useWindowNavigate;
