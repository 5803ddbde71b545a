// Gives Airflow's UI a component under the name of each app, as registration.py says.
import { OneChange, RunTab } from "./change";
import { OneDeployment } from "./deployment";
import { Deployments } from "./deployments";
import { React, useLocation } from "./host";
import { Overview } from "./overview";
import { placeIn } from "./places";
import styles from "./styles.css";

function FlinkDeployments() {
  const { ledger, deployment, change } = placeIn(useLocation().search);
  if (!ledger || !deployment) return <Deployments />;
  const key = `${ledger}/${deployment}/${change ?? ""}`;
  return change ? (
    <OneChange key={key} ledger={ledger} deployment={deployment} number={change} />
  ) : (
    <OneDeployment key={key} ledger={ledger} deployment={deployment} />
  );
}

function register(): void {
  // Not a <style> element, which a strict content security policy refuses.
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(styles);
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  Object.assign(globalThis, {
    Flink: FlinkDeployments,
    "Flink change": RunTab,
    "Flink overview": Overview,
  });
}

register();
