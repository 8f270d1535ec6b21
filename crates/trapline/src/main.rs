//! The binary: configuration, wiring, commands. It alone knows which adapters exist.

mod archive_url;
mod chronicle;
mod config;
mod config_command;
mod control_command;
mod crawl_command;
mod demo_command;
mod doctor_command;
mod ended;
mod explain_command;
mod fetch_command;
mod frontier_command;
mod links_command;
mod log;
mod moment;
mod output;
mod panel;
mod report_command;
mod robots_command;
mod serve_command;
mod sim_command;
mod sitemap_command;
mod size;
mod store_command;
mod store_url;
mod url_command;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crawl_command::Order;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A web crawl frontier: decides what to fetch next and when to come back, and forgets nothing.
#[derive(Parser)]
#[command(version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Config(config_command::ConfigArgs),
    Crawl(Box<crawl_command::CrawlArgs>),
    Demo(demo_command::DemoArgs),
    Doctor(doctor_command::DoctorArgs),
    Explain(explain_command::ExplainArgs),
    Fetch(fetch_command::FetchArgs),
    Frontier(frontier_command::FrontierCommand),
    Links(links_command::LinksArgs),
    Report(report_command::ReportCommand),
    Robots(robots_command::RobotsCommand),
    /// Pause a crawl: nothing is fetched until it is resumed, also after a restart
    Pause(control_command::ControlArgs),
    /// Let a crawl that runs read its configuration anew, and go on by that
    Reload(control_command::ControlArgs),
    /// Let a paused crawl go on
    Resume(control_command::ControlArgs),
    Serve(Box<serve_command::ServeArgs>),
    Sim(sim_command::SimArgs),
    Sitemap(sitemap_command::SitemapArgs),
    /// Show how a crawl stands, whether it runs or not
    Status(control_command::StatusArgs),
    Steer(control_command::SteerArgs),
    /// Stop a crawl when what is in flight has landed
    Stop(control_command::ControlArgs),
    Store(store_command::StoreCommand),
    Url(url_command::UrlCommand),
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Config(args) => config_command::run(&args),
        Command::Crawl(args) => crawl_command::run(&args),
        Command::Demo(args) => demo_command::run(&args),
        Command::Doctor(args) => doctor_command::run(&args),
        Command::Explain(args) => explain_command::run(&args),
        Command::Fetch(args) => fetch_command::run(&args),
        Command::Frontier(command) => frontier_command::run(&command),
        Command::Links(args) => links_command::run(&args),
        Command::Report(command) => report_command::run(&command),
        Command::Robots(command) => robots_command::run(&command),
        Command::Pause(args) => control_command::run(&args, &Order::Pause),
        Command::Reload(args) => control_command::run(&args, &Order::Reload),
        Command::Resume(args) => control_command::run(&args, &Order::Resume),
        Command::Serve(args) => serve_command::run(&args),
        Command::Sim(args) => sim_command::run(&args),
        Command::Sitemap(args) => sitemap_command::run(&args),
        Command::Status(args) => control_command::status(&args),
        Command::Steer(args) => control_command::steer(&args),
        Command::Stop(args) => control_command::run(&args, &Order::Stop),
        Command::Store(command) => store_command::run(&command),
        Command::Url(command) => url_command::run(&command),
    }
}
